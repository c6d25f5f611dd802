/** The host of a URL as a socket takes it: an IPv6 address without its brackets (RFC 3986 section 3.2.2). */
export const bareHost = (hostname: string): string => hostname.replaceAll(/^\[|\]$/g, '')
