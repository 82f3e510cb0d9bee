/** Whom the map is from: the operator's tile server, or the data of our own. */
export function Credit({ attribution }: { attribution: string | undefined }) {
  return (
    <p class="map-credit">
      {attribution ?? (
        <>
          <a href="https://www.naturalearthdata.com" target="_blank" rel="noreferrer">
            Natural Earth
          </a>{" "}
          ·{" "}
          <a href="https://www.geonames.org" target="_blank" rel="noreferrer">
            GeoNames
          </a>{" "}
          (CC BY)
        </>
      )}
    </p>
  );
}
