/** A share from 0 to 1 as people read it; a dash where there is none. */
export const percentText = (share: number | null): string => (share === null ? "–" : `${Math.round(share * 100)} %`);
