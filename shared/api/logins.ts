import { z } from 'zod'
import { accountNameForm, providerNameForm, scopeForm } from '../config/name-forms.ts'

/* Logins and tokens in the local API. */

export const accountSchema = z.strictObject({ id: z.string(), name: z.string() })
export type Account = z.infer<typeof accountSchema>

/** Body of `POST /oauth/start`. */
export const startLoginSchema = z.strictObject({
  /** `github`, or `github@work` for an account with a name. */
  provider: z.string().min(1).max(100),
  clientId: z.string().min(1).max(512).optional(),
  clientSecret: z.string().max(4096).optional(),
  scopes: z.array(z.string().regex(scopeForm, 'not a scope')).max(200).optional(),
  /** The user enters a code at the provider (RFC 8628); no callback is needed. */
  device: z.boolean().optional(),
})
export type StartLogin = z.infer<typeof startLoginSchema>

export const startedLoginSchema = z.strictObject({
  loginId: z.string(),
  provider: z.string(),
  authorizationUrl: z.string(),
  /** Until when the page can be opened, where the provider limits that (RFC 9126). */
  openBefore: z.iso.datetime().optional(),
  redirectUri: z.string(),
  scopes: z.array(z.string()),
  expiresAt: z.iso.datetime(),
  /** The provider has an endpoint for logins by device code. */
  device: z.literal(true).optional(),
})
export type StartedLogin = z.infer<typeof startedLoginSchema>

/** The response to a start with `device`: the page to open, and the code to enter there. */
export const startedDeviceLoginSchema = z.strictObject({
  loginId: z.string(),
  provider: z.string(),
  verificationUrl: z.string(),
  /** The page with the code in it: anyone who sees it could approve the login with another account. */
  verificationUrlComplete: z.string().optional(),
  userCode: z.string(),
  scopes: z.array(z.string()),
  expiresAt: z.iso.datetime(),
})
export type StartedDeviceLogin = z.infer<typeof startedDeviceLoginSchema>

export const loginSchema = z.strictObject({
  loginId: z.string(),
  provider: z.string(),
  status: z.enum(['pending', 'authorized', 'failed', 'expired', 'cancelled']),
  error: z
    .strictObject({ code: z.string(), message: z.string(), hint: z.string().optional() })
    .optional(),
  account: accountSchema.nullable().optional(),
  /** The account of the replaced login, if it is another one. */
  replaced: accountSchema.optional(),
  /** Another login, such as `github`, that is of the same account. */
  sameAccountAs: z.string().optional(),
  /** Requested scopes that were not granted; omitted when none are missing. */
  missingScopes: z.array(z.string()).optional(),
})
export type Login = z.infer<typeof loginSchema>

/** Body of `POST /oauth/logins/:loginId/redirect`. */
export const pastedRedirectSchema = z.strictObject({ url: z.string().min(1).max(8192) })

/** Body of `POST /oauth/import`: the token of another program, for a provider with the dialect of GitHub. */
export const importLoginSchema = z.strictObject({
  provider: z.string().min(1).max(100),
  accessToken: z.string().regex(/^[\x21-\x7e]{1,4096}$/, 'not a token'),
})
export type ImportLogin = z.infer<typeof importLoginSchema>

const importedLoginSchema = z.strictObject({
  provider: z.string(),
  account: accountSchema,
  scopes: z.array(z.string()),
  /** Omitted where GitHub names no time. */
  expiresAt: z.iso.datetime().optional(),
  /** The same as in a login. */
  replaced: accountSchema.optional(),
  sameAccountAs: z.string().optional(),
})
export type ImportedLogin = z.infer<typeof importedLoginSchema>

export const tokenSummarySchema = z.strictObject({
  /** `github`, or `github@work` for an account with a name. */
  provider: z.string(),
  /** The account that the provider's name means, where it has accounts with names. */
  default: z.literal(true).optional(),
  status: z.enum(['ok', 'expired', 'needs-login']),
  account: accountSchema.nullable(),
  scopes: z.array(z.string()),
  /** Requested scopes that were not granted; omitted when none are missing. */
  missingScopes: z.array(z.string()).optional(),
  expiresAt: z.iso.datetime().nullable(),
  /** When the refresh token expires; omitted if the provider does not say. */
  loginExpiresAt: z.iso.datetime().optional(),
  refreshable: z.boolean(),
  obtainedAt: z.iso.datetime(),
  /** Its tokens are made for each step. */
  isBot: z.literal(true).optional(),
})
export type TokenSummary = z.infer<typeof tokenSummarySchema>

/** Response of `GET /oauth/tokens/:provider/access`, the only document with a token. */
export const accessTokenSchema = z.strictObject({
  provider: z.string(),
  accessToken: z.string(),
  tokenType: z.string(),
  expiresAt: z.iso.datetime().nullable(),
  scopes: z.array(z.string()),
})
export type AccessToken = z.infer<typeof accessTokenSchema>

/** Response of `DELETE /oauth/tokens/:provider`. */
export const logoutSchema = z.strictObject({
  provider: z.string(),
  removed: z.literal(true),
  revokedAtProvider: z.boolean(),
  detail: z.string().optional(),
})
export type Logout = z.infer<typeof logoutSchema>

/** Body of `POST /oauth/default`: the account that the provider's name means; null for the unnamed one. */
export const setDefaultSchema = z.strictObject({
  provider: z.string().regex(providerNameForm, 'not the name of a provider'),
  account: z.string().regex(accountNameForm, 'not the name of an account').nullable(),
})

/** Response of `POST /oauth/default`. */
export const defaultAccountSchema = z.strictObject({ provider: z.string(), default: z.string() })
export type DefaultAccount = z.infer<typeof defaultAccountSchema>

export const providerSummarySchema = z.strictObject({
  provider: z.string(),
  clientKnown: z.boolean(),
  status: z.enum(['ok', 'expired', 'needs-login', 'not-logged-in']),
  account: accountSchema.nullable(),
  /** The known client supports only logins by device code. */
  device: z.literal(true).optional(),
})
export type ProviderSummary = z.infer<typeof providerSummarySchema>
