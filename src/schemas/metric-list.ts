/**
 * One name in a list that is separated by commas. A name may have labels, as `up{job="node",mode="a,b"}`: commas in these do not separate.
 * A backslash keeps the meaning of the next character from the syntax.
 */
const NAME = /(?:\\.|\{(?:[^"}\\]|\\.|"(?:[^"\\]|\\.)*")*\}|[^,])+/gs;

/** Splits a list of metric names, which the dashboard and the queries of the API have in one text. */
export const splitMetricNames = (list: string): string[] => list.match(NAME) ?? [];
