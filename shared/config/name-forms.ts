/* Which characters names have that come from a person or a provider and go into paths, headers and requests. */

/** The name of a provider, which is that of a file and a part of a path too. */
export const providerNameForm = /^[a-z0-9][a-z0-9_-]{0,63}$/

/** The name of a header field, a token (RFC 9110 section 5.6.2). */
export const headerNameForm = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/

/** One scope (RFC 6749 section 3.3). */
export const scopeForm = /^[\x21\x23-\x5b\x5d-\x7e]+$/
