import type { Config } from '../../shared/config/load.ts'
import { type PrivateText, replacePrivate } from '../../shared/privacy.ts'
import { type Check, type CheckStatus, summaryOf } from './check.ts'

/** What `doctor --json` prints. It goes to clipboards and into reports: nothing in it is private. */
export type DoctorDocument = {
  readonly ok: boolean
  readonly version: string
  readonly node: string
  readonly platform: string
  readonly checkedAt: string
  readonly online: boolean
  readonly summary: Readonly<Record<CheckStatus, number>>
  readonly checks: readonly Check[]
}

/** The document, with private texts replaced in every check, and whatever looks like a mail address. */
export const documentOf = (
  checks: readonly Check[],
  facts: Omit<DoctorDocument, 'ok' | 'summary' | 'checks'>,
  hidden: readonly PrivateText[],
): DoctorDocument => {
  const words = hidden.filter(([text]) => text.length > 1)
  const clean = (text: string): string => replacePrivate(text, words)
  const summary = summaryOf(checks)
  return {
    ok: summary.error === 0,
    ...facts,
    summary,
    checks: checks.map((check) => ({
      ...check,
      name: clean(check.name),
      detail: clean(check.detail),
      ...(check.hint === undefined ? {} : { hint: clean(check.hint) }),
    })),
  }
}

/** Where the internet reaches this machine, who is written to, and the paths that are a secret because nothing is signed there. */
export const privateTextsOf = (config: Config | undefined, userHome: string): PrivateText[] => [
  [userHome, '~'],
  ...(config?.gateway.server.public_url === undefined
    ? []
    : [[config.gateway.server.public_url, '<public url>'] as const]),
  // Those that name people and places; of the others it is a name of gateway.yaml.
  ...(config?.webhooks ?? [])
    .flatMap(({ targets }) => targets)
    .filter(({ kind }) => ['slack', 'telegram', 'email', 'github'].includes(kind))
    .map(({ kind, text }) => [text, `${kind}:<target>`] as const),
  ...(config?.webhooks ?? [])
    .filter(({ secretNames }) => secretNames.length === 0)
    .map(({ path }) => [path, '<unsigned webhook>'] as const),
]
