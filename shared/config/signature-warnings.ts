import type { SignatureForm } from '../signatures/form.ts'
import { presetSchemes } from '../signatures/presets.ts'
import { signsAddress } from '../signatures/scheme.ts'
import { secretFault } from '../signatures/secrets.ts'
import { listSecrets } from './environment.ts'
import type { Config } from './load.ts'
import { type Fault, faultAbout } from './warning.ts'
import type { Webhook } from './webhook.ts'

/** A scheme that the sender does not use, and secrets that do not fit the scheme. */
export const schemeFaults = (webhook: Webhook, env: NodeJS.ProcessEnv): Fault[] => [
  ...differenceFault(webhook),
  ...shapeFaults(webhook, env),
]

/** A described signature in the header of a known sender that signs in another way. */
const differenceFault = ({ path, scheme }: Webhook): Fault[] => {
  const form = scheme.name === 'hmac' ? scheme.forms[0] : undefined
  if (!form) return []
  const senders = presetSchemes.filter(({ forms }) =>
    forms.some(({ header, in: place }) => header === form.header && place === undefined),
  )
  const [first, ...more] = senders
  // The signatures of GitHub, Linear and Sentry are a plain HMAC too.
  if (!first || senders.some(({ forms }) => forms.every((each) => isPlain(each)))) return []
  if (senders.some(({ forms }) => forms.some((each) => signsAlike(each, form)))) return []
  if (first.name === 'grafana' && form.signs.join('') === withTime) return []
  const names = [first, ...more].map(({ name }) => name)
  return faultAbout({ webhook: path })(
    'scheme-differs',
    `${names.join(' and ')} does not sign ${form.header} ${isPlain(form) ? 'as a plain HMAC' : 'in this way'}, so no delivery is accepted`,
    `set signature_scheme: ${names.join(' or ')} and remove the fields that describe the signature`,
  )
}

/** What Grafana signs where its owner has named a header for the time. */
const withTime = '{timestamp}:{body}'

const isPlain = ({ encoding, signs, check }: SignatureForm): boolean =>
  encoding === 'hex' && signs.join() === '{body}' && check === 'mac'

const signsAlike = (a: SignatureForm, b: SignatureForm): boolean =>
  a.check === b.check &&
  a.encoding === b.encoding &&
  a.algorithm === b.algorithm &&
  a.param === b.param &&
  a.signs.join('') === b.signs.join('')

const shapeFaults = (
  { path, scheme, secretNames, source }: Webhook,
  env: NodeJS.ProcessEnv,
): Fault[] =>
  secretNames.flatMap((name) =>
    listSecrets([name], env).flatMap((secret) => {
      // It is ours then, and only keeps others out.
      if (source?.mode === 'poll') return []
      const fault = secretFault(scheme, secret)
      if (!fault) return []
      return faultAbout({ webhook: path })(
        fault.unusable ? 'secret-unusable' : 'secret-shape',
        `the value of ${name} ${fault.reason}${fault.unusable ? '; it verifies nothing' : ''}`,
        `copy the secret again from the sender into ${name}`,
      )
    }),
  )

/** What a webhook with a secret does not prove, or cannot, and what gives the secret away. */
export const proofFaults = (
  { path, scheme, secretNames, verifyTokenNames }: Webhook,
  { gateway }: Config,
): Fault[] => {
  const fault = faultAbout({ webhook: path })
  if (secretNames.length === 0) return []
  if (gateway.server.public_url === undefined && signsAddress(scheme))
    return fault(
      'address-unset',
      `${scheme.name} signs the public address, which is not set; its deliveries are answered 503`,
      'set server.public_url in gateway.yaml',
    )
  if (scheme.name === 'meta' && verifyTokenNames.some((name) => secretNames.includes(name)))
    return fault(
      'webhook-token',
      'the App Secret is the verify token too, which Meta sends in an address, and proxies log addresses',
      'set verify_token_env to a value of your own, and enter that at Meta',
    )
  if (scheme.name !== 'token') return []
  const inQuery = scheme.forms.some(({ in: place }) => place === 'query')
  return fault(
    'webhook-token',
    `a token proves less than a signature: anyone who reads one delivery${inQuery ? ', or its address in the log of a proxy,' : ''} can send others`,
    'let the sender sign if it can: doorward help webhooks',
  )
}
