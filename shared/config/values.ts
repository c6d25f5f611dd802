import { z } from 'zod'
import { parseBytes, parseMilliseconds, parseRate } from '../text.ts'
import { headerNameForm } from './name-forms.ts'

/*
 * The kinds of value that keys of the configuration take, each checked in our own words.
 */

const longestDurationMs = 365 * 86_400_000
const notDuration = 'not a duration: write it like 500ms, 30s, 10m, 2h or 7d'

const largestSize = 1024 ** 4
const notSize = 'not a size: write it like 512kb, 25mb or 1gb'

/** A duration with its default, in milliseconds once read. */
export const duration = (text: string, meaning: string) =>
  z
    .string(notDuration)
    .regex(/^\d+(ms|s|m|h|d)$/, notDuration)
    .transform(parseMilliseconds)
    .refine((ms) => ms > 0 && ms <= longestDurationMs, 'must lie between 1ms and 365d')
    .prefault(text)
    .describe(`${meaning} Default ${text}.`)

/** A size with its default, in bytes once read. */
export const size = (text: string, meaning: string) =>
  z
    .string(notSize)
    .regex(/^\d+(b|kb|mb|gb)$/, notSize)
    .transform(parseBytes)
    .refine((bytes) => bytes > 0 && bytes <= largestSize, 'must lie between 1b and 1024gb')
    .prefault(text)
    .describe(`${meaning} Default ${text}.`)

/** A long run of letters and digits, as generators of secrets make it and people who name things do not. */
const isLikeSecret = (name: string): boolean =>
  name.split('_').some((run) => run.length >= 20 && /[a-z]/.test(run) && /\d/.test(run))

/** The name of an environment variable, never its value. */
export const environmentName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'not the name of an environment variable')
  // A name is shown in warnings and logs.
  .refine(
    (name) => !isLikeSecret(name),
    'this looks like a secret, not the name of one: put NAME=... into .env, and that name here',
  )

/** The name of a header, in lower case once read. */
export const headerName = z
  .string()
  .regex(headerNameForm, 'not a header name')
  .transform((name) => name.toLowerCase())

const notRate = 'not a rate: write it like 10/s, 60/min or 1000/h'

/** So many in a time. */
export const rate = z
  .string(notRate)
  .regex(/^[1-9]\d{0,5}\/(s|min|h)$/, notRate)
  .transform(parseRate)

/** An https URL, or an http one of this machine. */
export const secureUrl = z
  .string()
  .refine(
    (text) => isSecureOrLoopback(text),
    'not an https URL (http is accepted for a loopback address only)',
  )

/** The same, to which paths are added. */
export const secureBaseUrl = secureUrl.refine(
  // What is no URL at all has been told of.
  (text) => !URL.canParse(text) || isBase(text),
  'not the beginning of a URL: paths of webhooks are added to it, so it has no user name, ? or #',
)

const isBase = (text: string): boolean => {
  const { username, password } = new URL(text)
  // An empty query or fragment would swallow a path too.
  return username === '' && password === '' && !/[?#]/.test(text)
}

const isSecureOrLoopback = (text: string): boolean => {
  if (!URL.canParse(text)) return false
  const { protocol } = new URL(text)
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackUrl(text))
}

/** True for a URL of this machine itself, where plain http is no risk. */
export const isLoopbackUrl = (url: string): boolean =>
  /^(127(\.\d{1,3}){3}|\[::1\]|localhost)$/.test(new URL(url).hostname)
