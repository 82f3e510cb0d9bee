/** Every secret of the tests contains this text, so that leaks can be found anywhere. */
export const SECRET_MARK = "s3cr3t";

/** Matches secrets of the tests, hashes and tokens. None may be in a log line, or in a response unless the API returns it. */
export const SECRETS = new RegExp(`${SECRET_MARK}|\\$argon2|eyJ[\\w-]{10,}\\.[\\w-]{10,}\\.[\\w-]{10,}`);

/** The password of accounts that tests create. */
export const PASSWORD = `${SECRET_MARK} horse battery`;
