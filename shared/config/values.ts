import { z } from 'zod'
import { parseBytes, parseMilliseconds, parseRate, type Rate } from '../text.ts'
import { isLoopbackUrl } from '../net.ts'
import { headerNameForm } from './name-forms.ts'

const longestDurationMs = 365 * 86_400_000
const notDuration = 'not a duration: write it like 500ms, 30s, 10m, 2h or 7d'

const largestSize = 1024 ** 4
const notSize = 'not a size: write it like 512kb, 25mb or 1gb'

const milliseconds = z
  .string(notDuration)
  .regex(/^\d+(ms|s|m|h|d)$/, notDuration)
  .transform(parseMilliseconds)

/** A duration with its default, parsed to milliseconds. */
export const duration = (text: string, meaning: string) =>
  milliseconds
    .refine((ms) => ms > 0 && ms <= longestDurationMs, 'must be between 1ms and 365d')
    .prefault(text)
    .describe(`${meaning} Default ${text}.`)

/** The same, where `off` is 0. */
export const durationOrOff = (text: string, meaning: string) =>
  z
    .union([z.literal('off').transform(() => 0), milliseconds])
    .refine((ms) => ms <= longestDurationMs, 'must be at most 365d')
    .prefault(text)
    .describe(`${meaning} Default ${text}.`)

/** The same without one. */
export const optionalDuration = (meaning: string) =>
  milliseconds
    .refine((ms) => ms <= longestDurationMs, 'must be at most 365d')
    .optional()
    .describe(meaning)

/** How old a delivery may be: as old as those that are remembered, so that none runs twice. */
export const deliveryAge = milliseconds.refine((ms) => ms <= 86_400_000, 'must be at most 24h')

const bytes = z
  .string(notSize)
  .regex(/^\d+(b|kb|mb|gb)$/, notSize)
  .transform(parseBytes)

/** A size with its default, parsed to bytes. */
export const size = (text: string, meaning: string) =>
  bytes
    .refine((count) => count > 0 && count <= largestSize, 'must be between 1b and 1024gb')
    .prefault(text)
    .describe(`${meaning} Default ${text}.`)

/** Of a text for a model: while one of 2 MB is made harmless, the daemon does nothing else for half a second. */
export const contextSize = bytes.refine(
  (count) => count >= 1024 && count <= 2 * 1024 ** 2,
  'must be between 1kb and 2mb',
)

/** Of a transcript: all of them are in memory. */
export const sessionSize = bytes.refine(
  (count) => count >= 16 * 1024 && count <= 16 * 1024 ** 2,
  'must be between 16kb and 16mb',
)

/** Hosts whose links may stand in an answer. */
export const linkHosts = z
  .array(
    z
      .string()
      .regex(
        /^(?:\*\.)?[a-z\d](?:[a-z\d.-]*[a-z\d])?(?::\d{1,5})?$/i,
        'not a host such as docs.example.com, *.example.com or localhost:8080',
      ),
  )
  .min(1)
  .optional()

/** What a machine does for a shared queue. `door` is what versions before this one call a receiver. */
export const machineRole = z
  .enum(['receiver', 'worker', 'both', 'door'])
  .transform((role) => (role === 'door' ? 'receiver' : role))

/** True for a long run of letters and digits, as in generated secrets and not in names. */
const looksLikeSecret = (name: string): boolean =>
  name.split('_').some((run) => run.length >= 20 && /[a-z]/.test(run) && /\d/.test(run))

/** The name of an environment variable, never its value. */
export const environmentName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'not the name of an environment variable')
  // Names appear in warnings and logs.
  .refine(
    (name) => !looksLikeSecret(name),
    'this looks like a secret, not like the name of a variable: put NAME=... into .env, and the name here',
  )

/** The name of a header, parsed to lower case. */
export const headerName = z
  .string()
  .regex(headerNameForm, 'not a header name')
  .transform((name) => name.toLowerCase())

const notRate = 'not a rate: write it like 10/s, 60/min or 1000/h'

export const rate = z
  .string(notRate)
  .regex(/^[1-9]\d{0,5}\/(s|min|h)$/, notRate)
  .transform(parseRate)

const notMaxRuns = 'not a number of runs: write it like 50/day or 10/hour'

export const maxRuns = z
  .string(notMaxRuns)
  .regex(/^[1-9]\d{0,4}\/(hour|day)$/, notMaxRuns)
  .transform((text): Rate => {
    const perMs = text.endsWith('/day') ? 86_400_000 : 3_600_000
    return { count: Number.parseInt(text, 10), perMs }
  })

/** An https URL, or an http URL of this machine. */
export const secureUrl = z
  .string()
  .refine(
    (text) => isSecureOrLoopback(text),
    'not an https URL (http is accepted for a loopback address only)',
  )

/** The same for a URL to which paths are added. */
export const secureBaseUrl = secureUrl.refine(
  // `secureUrl` has reported what is not a URL.
  (text) => !URL.canParse(text) || isBase(text),
  'not the beginning of a URL: webhook paths are added to it, so it must not have a user name, ? or #',
)

const isBase = (text: string): boolean => {
  const { username, password } = new URL(text)
  // Even an empty query or fragment would swallow the path.
  return username === '' && password === '' && !/[?#]/.test(text)
}

const isSecureOrLoopback = (text: string): boolean => {
  if (!URL.canParse(text)) return false
  const { protocol } = new URL(text)
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackUrl(text))
}
