import { z } from 'zod'
import { isSafeToOpen } from '../net.ts'

/* Bots of the local API: GitHub Apps of the owner's own, made in the browser. */

/** What the App may do: comment and check, or also push branches. */
export const botAbilities = ['review', 'fix'] as const
export type BotAbility = (typeof botAbilities)[number]

/** The slug of a GitHub App, which is its name in small letters with dashes. */
export const botSlugForm = /^[a-z0-9][a-z0-9-]{0,33}$/

const httpsUrl = z.string().max(2000).refine(isSafeToOpen, 'not an https address')

/** Body of `POST /bots`. */
export const createBotSchema = z.strictObject({
  provider: z.literal('github'),
  /** The organization that owns it; without one, the person. */
  org: z
    .string()
    .regex(/^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})$/, 'not the name of an organization')
    .optional(),
  /** GitHub has each name once. */
  name: z.string().trim().min(1).max(34, 'GitHub takes at most 34 characters').optional(),
  can: z.enum(botAbilities).optional(),
  /** The base of the address of its deliveries. Default: `server.public_url`. */
  url: httpsUrl.optional(),
  /** The address that leads nowhere, where there is no base. */
  placeholder: httpsUrl.optional(),
  /** The home page in its manifest. */
  homepage: httpsUrl.optional(),
  /** A GitHub Enterprise Server. */
  enterprise: httpsUrl.optional(),
})
export type CreateBot = z.infer<typeof createBotSchema>

export const botSummarySchema = z.strictObject({
  /** Its slug. */
  name: z.string(),
  /** `github@<slug>` */
  login: z.string(),
  owner: z.string(),
  can: z.enum(botAbilities),
  pageUrl: z.string(),
  settingsUrl: z.string(),
  installUrl: z.string(),
  /** Where GitHub sends deliveries, and whether that leads anywhere. */
  hookUrl: z.string(),
  isReachable: z.boolean(),
  createdAt: z.iso.datetime(),
})
export type BotSummary = z.infer<typeof botSummarySchema>

/** `GET /bots/:name`: the bot as GitHub has it now. */
export type BotDetails = BotSummary & {
  readonly permissions: Readonly<Record<string, string>>
  readonly events: readonly string[]
  readonly installations: readonly BotInstallation[]
}

export type BotInstallation = {
  readonly account: string
  readonly isSuspended: boolean
  /** `owner/name`; the first 100. */
  readonly repositories: readonly string[]
  readonly isAll: boolean
}

/** A bot that is being made: its page opens once, and the time to press its button is limited. */
export type BotCreation = {
  readonly id: string
  readonly status: 'pending' | 'created' | 'failed' | 'expired' | 'cancelled'
  /** The page with the button, while it waits; it opens once. */
  readonly url?: string
  readonly expiresAt: string
  readonly bot?: BotSummary
  readonly error?: { readonly code: string; readonly message: string; readonly hint?: string }
}

/** Body of `POST /bots/:name/rotate`: one of both. */
export const rotateBotSchema = z.strictObject({
  /** A new private key, as PEM: GitHub makes it on the page of the App. */
  privateKey: z.string().min(1).max(16_384).optional(),
  /** A new secret of its deliveries. */
  secret: z.literal(true).optional(),
})
export type RotateBot = z.infer<typeof rotateBotSchema>

/** `GITHUB_BOT_<SLUG>_SECRET`: the variable with the secret of its deliveries. */
export const toBotSecretName = (slug: string): string =>
  `GITHUB_BOT_${slug.toUpperCase().replaceAll('-', '_')}_SECRET`

/** The path of the webhook that takes its deliveries. */
export const toBotPath = (slug: string): string => `/webhook/${slug}`

/** Nothing listens there (RFC 6761 section 6.4): GitHub keeps the deliveries, and they are read from its list. */
export const noAddress = 'https://doorward.invalid'
