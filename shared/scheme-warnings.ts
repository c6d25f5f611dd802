import type { Warning } from './warning.ts'
import { secretsOf } from './environment.ts'
import { secretFault } from './secret-key.ts'
import { presetSchemes } from './signature-schemes.ts'
import type { Webhook } from './webhook-definition.ts'

/** A scheme that the sender does not use, and secrets that are none of the scheme. */
export const schemeWarnings = (
  { path, scheme, secretNames }: Webhook,
  env: NodeJS.ProcessEnv,
): Warning[] => {
  const header = scheme.name === 'hmac' ? scheme.forms[0]?.header : undefined
  const preset = presetSchemes.find(({ forms }) => forms.some((form) => form.header === header))
  // What GitHub, Linear and Sentry do can be said with hmac too.
  const isSaid = preset?.forms.every(
    ({ encoding, signs, check }) => encoding === 'hex' && signs === '{raw}' && check === 'mac',
  )
  const other: Warning[] =
    preset === undefined || isSaid
      ? []
      : [
          {
            code: 'scheme-differs',
            detail: `webhook ${path}: ${preset.name} does not sign ${header} as a plain HMAC, so nothing will fit`,
            hint: `set signature_scheme: ${preset.name} instead of signature_header and its neighbours`,
          },
        ]
  const faults = secretNames.flatMap((name): Warning[] =>
    secretsOf([name], env).flatMap((secret) => {
      const fault = secretFault(scheme, secret)
      return fault === undefined
        ? []
        : [
            {
              code: fault.unusable ? 'secret-unusable' : 'secret-shape',
              detail: `webhook ${path}: the value of ${name} ${fault.reason}${fault.unusable ? '; nothing can be verified with it' : ''}`,
              hint: `copy the secret again from the sender into ${name}`,
            },
          ]
    }),
  )
  return [...other, ...faults]
}
