import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** Between the list and the edge of the window. */
const MARGIN_PX = 24;

/** A button that opens a list of actions. Closes when one is chosen, with Escape, and with a click elsewhere. */
export function Menu({
  label,
  items,
}: {
  label: ComponentChildren;
  items: readonly { label: string; hint: string; isDisabled: boolean; onChoose(): void }[];
}) {
  const menu = useRef<HTMLDetailsElement>(null);
  const list = useRef<HTMLUListElement>(null);
  /** Moves the list to the left if it would leave the window. */
  const placeList = () => {
    if (list.current === null || menu.current === null) return;
    const right = menu.current.getBoundingClientRect().left + list.current.offsetWidth + MARGIN_PX;
    list.current.style.left = `${Math.min(0, document.documentElement.clientWidth - right)}px`;
  };
  const close = () => {
    if (menu.current?.open !== true) return;
    // Otherwise the focus would be lost with the button that has it.
    if (menu.current.contains(document.activeElement)) menu.current.querySelector("summary")?.focus();
    menu.current.open = false;
  };
  useEffect(() => {
    const onPointerDown = ({ target }: PointerEvent) => {
      if (target instanceof Node && !menu.current?.contains(target)) close();
    };
    document.addEventListener("pointerdown", onPointerDown);
    return () => document.removeEventListener("pointerdown", onPointerDown);
  }, []);
  return (
    <details class="menu" ref={menu} onToggle={placeList} onKeyDown={({ key }) => key === "Escape" && close()}>
      <summary>{label}</summary>
      <ul ref={list}>
        {items.map(({ label, hint, isDisabled, onChoose }) => (
          <li key={label}>
            <button
              type="button"
              class="quiet"
              disabled={isDisabled}
              onClick={() => {
                close();
                onChoose();
              }}
            >
              {label} <span class="soft">{hint}</span>
            </button>
          </li>
        ))}
      </ul>
    </details>
  );
}
