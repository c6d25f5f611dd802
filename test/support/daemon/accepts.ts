import { checkBodyTimestamp } from '../../../daemon/webhook/read-delivery.ts'
import { parse } from '../../../daemon/webhook/read-delivery.ts'
import type { SignatureHeaders } from '../../../daemon/webhook/signatures/header.ts'
import { prepareVerifier, verify } from '../../../daemon/webhook/signatures/verify.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { toScheme } from '../../../shared/signatures/described.ts'
import type { SchemeName } from '../../../shared/signatures/presets.ts'
import { pathOf, publicUrl, senders } from '../servers/senders.ts'

const githubFields = {
  header: 'x-hub-signature-256',
  algorithm: 'sha256',
  prefix: 'sha256=',
} as const

/** The scheme of a name, `hmac` with its default fields. */
export const schemeNamed = (name: SchemeName) => toScheme(name, githubFields)

/**
 * Why a delivery is refused by the stages that decide on its sender, undefined when it is taken. What
 * is no refusal of a signature is thrown on.
 */
export const refusalOf = (
  name: SchemeName,
  secrets: readonly string[],
  headers: SignatureHeaders,
  body: Buffer,
  nowMs: number,
): string | undefined => {
  const scheme = schemeNamed(name)
  try {
    const sender = senders.find((known) => known.scheme === name)
    const line = { method: 'POST', url: sender ? pathOf(sender) : '/' }
    const verified = verify(body, headers, prepareVerifier(scheme, secrets, publicUrl), nowMs, line)
    if (scheme.bodyTimestamp !== undefined)
      checkBodyTimestamp(parse(verified, { 'content-type': 'application/json' }), scheme, nowMs)
    return undefined
  } catch (error) {
    const isRefusal =
      error instanceof DoorwardError &&
      (error.code === 'signature-invalid' || error.code === 'payload-not-json')
    if (isRefusal) return error.localDetail ?? error.message
    throw error
  }
}

/** Headers as Node gives them, each value apart. */
export const distinct = (headers: Readonly<Record<string, string>>): SignatureHeaders =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]))
