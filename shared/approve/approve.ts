import { z } from 'zod'
import { isAddress, sentKinds } from '../targets/schema.ts'
import { ownChat } from '../targets/targets.ts'
import { optionalDuration } from '../config/values.ts'
import { type Role, roles } from '../config/who.ts'

/*
 * A rule asks its owner before an answer leaves, and says who may answer where. The command line, the page and the
 * tray belong to the owner and always may; from every other place only those may that `who` names.
 */

const localKinds = ['log', 'notify', 'file'] as const

const isPlace = (text: string): boolean => {
  if (text === 'desktop' || text === 'check') return true
  const [kind, address] = splitPlace(text)
  if (kind === 'telegram') return address === ownChat || isAddress(kind, address)
  // An incoming webhook shows no buttons.
  return kind === 'slack' && isAddress(kind, address) && !address.includes('://')
}

/** `slack:#ops` → `slack`, `#ops` */
export const splitPlace = (text: string): readonly [kind: string, address: string] => {
  const [kind = ''] = text.split(':', 1)
  return [kind, text.slice(kind.length + 1)]
}

const place = z
  .string()
  .refine(
    isPlace,
    'not a place: write desktop, check, slack:#channel, telegram:@me or telegram:<chat>',
  )

const slackPerson = z.string().regex(/^[UW][A-Z0-9]{2,30}$/, 'not the id of a person: U024BE7LH')
const telegramPerson = z.union([
  z.int().positive().transform(String),
  z.string().regex(/^[1-9]\d{0,19}$/, 'not the number of a person'),
])

export const approveSchema = z.union([
  z.boolean(),
  z.strictObject({
    by: z
      .array(place)
      .min(1)
      .optional()
      .describe(
        'Where you are asked: desktop, check (of a rule with check: true), slack:#channel, telegram:@me. Default desktop.',
      ),
    who: z
      .strictObject({
        slack: z
          .array(slackPerson)
          .optional()
          .describe('Ids of the people who may press at Slack.'),
        telegram: z
          .array(telegramPerson)
          .optional()
          .describe('Numbers of the people who may press at Telegram.'),
        github: z
          .enum(roles)
          .optional()
          .describe('The role that may press at a check: read, triage, write, maintain or admin.'),
      })
      .optional()
      .describe('Who may answer there. Default: no one.'),
    when: z
      .array(z.enum([...localKinds, ...sentKinds]))
      .min(1)
      .optional()
      .describe(
        'The kinds of targets that need it, as pull-request. Default: all that leave this machine.',
      ),
    timeout: optionalDuration('How long the question stands. Default 24h.'),
  }),
])

type ApproveEntry = z.output<typeof approveSchema>

export type Approve = {
  readonly by: readonly string[]
  /** Ids of the providers; none means that no one may answer there. */
  readonly who: {
    readonly slack?: readonly string[] | undefined
    readonly telegram?: readonly string[] | undefined
    readonly github?: Role | undefined
  }
  /** Undefined: all kinds that leave this machine. */
  readonly when?: readonly string[] | undefined
  readonly timeoutMs: number
}

const usualTimeoutMs = 86_400_000

/** The settings of the rule, else of gateway.yaml; undefined where nothing is asked. */
export const toApprove = (
  rule: ApproveEntry | undefined,
  gateway: ApproveEntry | undefined,
): Approve | undefined => {
  const entry = rule ?? gateway ?? false
  if (entry === false) return undefined
  const { by = ['desktop'], who = {}, when, timeout } = entry === true ? {} : entry
  return { by, who, ...(when && { when }), timeoutMs: timeout || usualTimeoutMs }
}

/** True for a target about which the owner is asked. */
export const needsApproval = ({ when }: Approve, kind: string): boolean =>
  when ? when.includes(kind) : ![...localKinds, 'none', 'invalid'].includes(kind)
