import { z } from 'zod'
import { isLoopbackUrl } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'

/** A device code and what a person needs for it, checked to be safe to show and to open. */
export type DeviceAuthorization = {
  /** Secret: whoever has it gets the tokens. */
  readonly deviceCode: string
  readonly userCode: string
  readonly verificationUrl: string
  /** The same page with the user code in it, where the provider has one. */
  readonly verificationUrlComplete: string | undefined
  readonly lifetimeSeconds: number | undefined
  readonly intervalSeconds: number | undefined
}

/**
 * Reads a device authorization response (RFC 8628 section 3.2) of this endpoint. A lifetime or interval
 * that is none counts as not named. Throws `provider-refused` when it lacks a code or a page, or has one
 * that must not be shown.
 */
export const readDeviceAuthorization = (text: string, endpoint: string): DeviceAuthorization => {
  const { host } = new URL(endpoint)
  const answer = answerSchema.safeParse(objectIn(text)).data
  if (!answer) throw refuse(`${host} sent no device code that can be used`)
  const page = answer.verification_uri ?? answer.verification_url
  const verificationUrl = page === undefined ? undefined : safePage(page, endpoint)
  if (verificationUrl === undefined)
    throw refuse(`${host} named no https page where the code could be entered`)
  const complete = answer.verification_uri_complete
  return {
    deviceCode: answer.device_code,
    userCode: answer.user_code,
    verificationUrl,
    verificationUrlComplete: complete === undefined ? undefined : safePage(complete, endpoint),
    lifetimeSeconds: answer.expires_in,
    intervalSeconds: answer.interval,
  }
}

/** Some send numbers as text. */
const seconds = z.coerce.number().positive().optional().catch(undefined)
const page = z.string().max(2048).optional().catch(undefined)

const answerSchema = z.object({
  device_code: z.string().min(1).max(4096),
  // It is printed on terminals and read aloud: visible ASCII, with single spaces at most.
  user_code: z
    .string()
    .max(64)
    .regex(/^[\x21-\x7e]+( [\x21-\x7e]+)*$/),
  verification_uri: page,
  /** The name of drafts before the RFC, and of Google. */
  verification_url: page,
  verification_uri_complete: page,
  expires_in: seconds,
  interval: seconds,
})

/**
 * The address as it may be shown and opened: https, or http on loopback of a provider that is there
 * itself; and none that seems to lead elsewhere (`https://github.com@evil.example`).
 */
const safePage = (text: string, endpoint: string): string | undefined => {
  if (!URL.canParse(text)) return undefined
  const { protocol, username, password, href } = new URL(text)
  if (username !== '' || password !== '') return undefined
  const isLocal = protocol === 'http:' && isLoopbackUrl(href) && isLoopbackUrl(endpoint)
  return protocol === 'https:' || isLocal ? href : undefined
}

const objectIn = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const refuse = (message: string): DoorwardError =>
  new DoorwardError('provider-refused', message, {
    hint: 'check the device authorization endpoint in gateway.yaml, or log in without --device',
  })
