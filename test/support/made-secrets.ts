import { createHash, createHmac, generateKeyPairSync } from 'node:crypto'
import { toChecksum } from '../../daemon/delivery/secrets/forms.ts'
import type { FormKind } from '../../shared/secret-kinds.ts'

/*
 * Secrets that look real and open nothing. They are put together while a test runs: a host of code refuses a
 * repository that has them as they stand.
 */

/** Nothing: it keeps the parts of a text apart in the source. */
export const no: string = ''

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const alphanumeric = `${letters}0123456789`

/** The same for each name, so that a failure can be repeated. */
const pick = (name: string, length: number, from: string): string => {
  let text = ''
  for (let block = 0; text.length < length; block += 1)
    for (const byte of createHash('sha512').update(`${name} ${block}`).digest())
      if (byte < 256 - (256 % from.length)) text += from[byte % from.length] ?? ''
  return text.slice(0, length)
}

const withChecksum = (prefix: string, name: string): string => {
  const body = pick(name, 30, alphanumeric)
  return `${prefix}_${body}${toChecksum(body)}`
}

const base64url = (value: unknown): string =>
  Buffer.from(JSON.stringify(value)).toString('base64url')

export const makeJwt = (claims: object, header: object = { alg: 'HS256', typ: 'JWT' }): string => {
  const signed = `${base64url(header)}.${base64url(claims)}`
  return `${signed}.${createHmac('sha256', 'a test').update(signed).digest('base64url')}`
}

const makePem = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

const makeRsaPem = (): string =>
  generateKeyPairSync('rsa', { modulusLength: 2048 })
    .privateKey.export({ type: 'pkcs1', format: 'pem' })
    .toString()

const word = `${alphanumeric}_-`
const openai = `T3Blbk${no}FJ`

type MadeSecret = readonly [kind: FormKind, secret: string]

let made: readonly MadeSecret[] | undefined

/** Several of each kind, always the same ones: the key of RSA takes a third of a second. */
export const makeSecrets = (): readonly MadeSecret[] => (made ??= makeAll())

const makeAll = (): readonly MadeSecret[] => [
  ...['ghp', 'gho', 'ghu', 'ghs', 'ghr'].map(
    (prefix) => ['github-token', withChecksum(prefix, prefix)] as const,
  ),
  ['github-token', `ghs_12345_${makeJwt({ iss: 'github', app: 12345 }, { alg: 'RS256' })}`],
  [
    'github-token',
    `github_${no}pat_${pick('pat', 22, alphanumeric)}_${pick('pat2', 59, alphanumeric)}`,
  ],
  ['gitlab-token', `glpat${no}-${pick('gitlab', 20, word)}`],
  [
    'gitlab-token',
    `glpat${no}-${pick('routable', 27, word)}.01.${pick('tail', 9, '0123456789abcdefghijklmnopqrstuvwxyz')}`,
  ],
  ['gitlab-token', `glrt${no}-${pick('runner', 20, word)}`],
  ['gitlab-token', `gloas${no}-${pick('oauth', 64, '0123456789abcdef')}`],
  [
    'slack-token',
    `xoxb${no}-${pick('s1', 12, '123456789')}-${pick('s2', 13, '123456789')}-${pick('s3', 24, alphanumeric)}`,
  ],
  [
    'slack-token',
    `xoxp${no}-${pick('s4', 11, '123456789')}-${pick('s5', 11, '123456789')}-${pick('s6', 12, '123456789')}-${pick('s7', 32, '0123456789abcdef')}`,
  ],
  [
    'slack-token',
    `xapp${no}-1-A${pick('s8', 10, 'ABCDEFGH0123456789')}-${pick('s9', 13, '123456789')}-${pick('s10', 64, '0123456789abcdef')}`,
  ],
  [
    'slack-webhook',
    `https://hooks.slack.com/${no}services/T${pick('w1', 10, 'ABCDEFGH0123456789')}/B${pick('w2', 10, 'ABCDEFGH0123456789')}/${pick('w3', 24, alphanumeric)}`,
  ],
  ['stripe-key', `sk_${no}live_${pick('stripe', 24, alphanumeric)}`],
  ['stripe-key', `rk_${no}live_${pick('stripe2', 99, alphanumeric)}`],
  ['webhook-secret', `whsec${no}_${pick('hook', 32, alphanumeric)}`],
  ['aws-key', `AKI${no}A${pick('aws', 16, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567')}`],
  ['aws-key', `ASI${no}A${pick('aws2', 16, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567')}`],
  ['aws-key', `aws_secret_access_key = ${pick('aws3', 40, `${alphanumeric}/+`)}`],
  ['google-key', `AIz${no}a${pick('google', 35, word)}`],
  ['google-key', `ya29${no}.${pick('google2', 180, word)}`],
  ['google-key', `GOCSPX${no}-${pick('google3', 28, word)}`],
  ['openai-key', `sk-proj-${pick('o1', 74, word)}${openai}${pick('o2', 74, word)}`],
  ['openai-key', `sk-${pick('o3', 20, alphanumeric)}${openai}${pick('o4', 20, alphanumeric)}`],
  ['anthropic-key', `sk-ant-${no}api03-${pick('claude', 93, word)}AA`],
  ['anthropic-key', `sk-ant-${no}oat01-${pick('claude2', 93, word)}AA`],
  ['npm-token', withChecksum('npm', 'npm')],
  ['pypi-token', `pypi-${no}AgEIcHlwaS5vcmc${pick('pypi', 120, word)}`],
  ['huggingface-token', `hf${no}_${pick('hugging', 34, letters)}`],
  ['sendgrid-key', `SG${no}.${pick('grid', 22, word)}.${pick('grid2', 43, word)}`],
  [
    'discord-webhook',
    `https://discord.com/api/${no}webhooks/${pick('d1', 19, '123456789')}/${pick('d2', 68, word)}`,
  ],
  ['telegram-token', `${pick('t1', 10, '123456789')}:${no}AA${pick('t2', 33, word)}`],
  ['linear-key', `lin_api${no}_${pick('linear', 40, alphanumeric)}`],
  ['atlassian-token', `ATATT${no}3${pick('jira', 186, word)}`],
  ['private-key', makePem()],
  ['private-key', makeRsaPem()],
  ['jwt', makeJwt({ sub: 'ada', iss: 'https://login.acme.dev', exp: 4_102_444_800 })],
  ['jwt', makeJwt({ user: 17, scope: 'admin' }, { alg: 'RS256', kid: 'a1' })],
]
