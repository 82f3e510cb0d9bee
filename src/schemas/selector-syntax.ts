/** The selector language for the dashboard. Apart from `selector.ts`, so that the page does not contain zod. */
export {
  expandGroups,
  GROUP_NAME,
  isGroup,
  LABEL_KEY,
  LABEL_VALUE,
  type LabelCondition,
  type Labels,
  MAX_LABEL_LENGTH,
  matches,
  parseSelector,
  SERVICE_LABELS,
  type Selector,
  SelectorError,
  type SelectorTerms,
} from "../lib/selectors.ts";
