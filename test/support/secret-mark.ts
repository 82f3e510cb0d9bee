/** In every secret that the tests choose, so that one which gets out is seen wherever it turns up. */
export const SECRET_MARK = "s3cr3t";

/** What must not be in a log line or, but for where the interface returns it, in an answer: our secrets, hashes, tokens. */
export const SECRETS = new RegExp(`${SECRET_MARK}|\\$argon2|eyJ[\\w-]{10,}\\.[\\w-]{10,}\\.[\\w-]{10,}`);

/** Of the accounts that tests make. */
export const PASSWORD = `${SECRET_MARK} horse battery`;
