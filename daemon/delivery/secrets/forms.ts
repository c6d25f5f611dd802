import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { FormKind } from '../../../shared/secret-kinds.ts'

/*
 * Well-known forms of secrets. Each has a literal start, by which it is found in one pass, and a pattern of bounded
 * length. A check leaves out what is no secret: placeholders, and the example keys of documentation.
 */

export type SecretForm = {
  readonly kind: FormKind
  /** For the owner, in an event. */
  readonly name: string
  /** Where the issuer, or a scanner that was compared, describes the form. */
  readonly source: string
  /** One of these is at the place where `pattern` is tried. */
  readonly starts: readonly string[]
  /** Sticky. Its first group is the value that `isReal` gets, else the whole match. */
  readonly pattern: RegExp
  /** By default `isRandom`. `now` is in milliseconds since 1970. */
  readonly isReal?: (value: string, now: number) => boolean
}

/** Bits for each character (Shannon), from the characters of the text itself. */
const entropy = (text: string): number => {
  const counts = new Uint32Array(256)
  for (let place = 0; place < text.length; place += 1) {
    const code = text.charCodeAt(place) & 0xff
    counts[code] = (counts[code] ?? 0) + 1
  }
  return counts.reduce(
    (bits, count) =>
      count === 0 ? bits : bits - (count / text.length) * Math.log2(count / text.length),
    0,
  )
}

/** Words and runs that nobody's key has, and every placeholder. */
const placeholder =
  /example|sample|placeholder|redacted|replace|changeme|dummy|your[-_]|(.)\1{4}|(..)\2{3}|x{4}|0123456|1234567|abcdefg|qwerty/i

const minBits = 3.3

/** True for a value that a machine made: mixed characters, and no words of a placeholder. */
const isRandom = (value: string): boolean =>
  /\d|[A-Z]/.test(value) &&
  /[A-Za-z]/.test(value) &&
  entropy(value) >= minBits &&
  !placeholder.test(value) &&
  !isDocumented(value)

/**
 * Keys of documentation that look random, by the first 16 digits of their SHA-256: Slack (docs.slack.dev/authentication/tokens),
 * Svix and Standard Webhooks (docs.svix.com/receiving/verifying-payloads/how-manual), Google
 * (developers.google.com/maps/documentation), and a token with a checksum in gist coolaj86/eb8cddfd3e4251258712dfed03e1f86d.
 */
const documented: ReadonlySet<string> = new Set([
  'f5375a46365089a8',
  '2dd745ff991276ae',
  '975f531c6adf7cd1',
  '17327e264ca750bd',
  'ac9265e56c79b234',
  '43678fe10ddfc0ba',
  '976b57ee8acdfcf4',
])

const isDocumented = (value: string): boolean =>
  documented.has(hash('sha256', value, 'hex').slice(0, 16))

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** The CRC-32 of a text in base 62 with six digits, as it ends the tokens of GitHub. */
export const toChecksum = (text: string): string => {
  let rest = crc32(text)
  let sum = ''
  for (let place = 0; place < 6; place += 1) {
    sum = `${digits[rest % 62]}${sum}`
    rest = Math.floor(rest / 62)
  }
  return sum
}

const hasChecksum = (token: string): boolean => {
  const body = token.slice(token.indexOf('_') + 1)
  return toChecksum(body.slice(0, -6)) === body.slice(-6)
}

const parseJson = (base64url: string): Readonly<Record<string, unknown>> | undefined => {
  try {
    const value: unknown = JSON.parse(Buffer.from(base64url, 'base64url').toString())
    return typeof value === 'object' && value !== null
      ? (value as Readonly<Record<string, unknown>>)
      : undefined
  } catch {
    return undefined
  }
}

/** Reserved names (RFC 2606), the people of jwt.io and RFC 7519, and the public key of a Supabase project. */
const isExampleClaim = ({ sub, name, iss, role }: Readonly<Record<string, unknown>>): boolean =>
  sub === '1234567890' ||
  name === 'John Doe' ||
  iss === 'joe' ||
  role === 'anon' ||
  /\bexample\.(com|org|net)\b|\.(example|test|invalid)\b|\/\/localhost\b/.test(String(iss))

/** A JWT (RFC 7519) that somebody signed and that has not ended. */
const isLiveJwt = (value: string, now: number): boolean => {
  const [first = '', second = '', signature = ''] = value.split('.')
  const header = parseJson(first)
  const claims = parseJson(second)
  if (!header || !claims || typeof header['alg'] !== 'string' || header['alg'] === 'none')
    return false
  const { exp } = claims
  const hasEnded = typeof exp === 'number' && exp * 1000 < now
  return !hasEnded && !isExampleClaim(claims) && entropy(signature) >= minBits
}

/** A key of 128 bits or more between the lines of PEM (RFC 7468), also in one line or in a diff. */
const isPrivateKey = (value: string): boolean => {
  const body = value
    .replace(/^-----[^-]{1,80}-----/, '')
    .replace(/-----END[\s\S]*$/, '')
    .replaceAll(/(Proc-Type|DEK-Info|Version|Comment):[^\n\\]{0,200}/g, '')
    .replaceAll(/\\[nr]|[^A-Za-z0-9+/]/g, '')
    .slice(0, 2000)
  return body.length >= 40 && entropy(body) >= 4 && !placeholder.test(body.slice(0, 64))
}

const isAwsSecret = (value: string): boolean =>
  isRandom(value) && entropy(value) >= 4 && !/^[0-9a-f]+$/i.test(value)

const gitleaks = 'github.com/gitleaks/gitleaks, config/gitleaks.toml'

export const secretForms: readonly SecretForm[] = [
  {
    kind: 'github-token',
    name: 'a token of GitHub',
    source: 'github.blog/engineering/behind-githubs-new-authentication-token-formats',
    starts: ['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_'],
    pattern: /gh[pousr]_[A-Za-z0-9]{36}(?:[A-Za-z0-9]{40})?(?![A-Za-z0-9])/y,
    isReal: (value) => hasChecksum(value) && !isDocumented(value),
  },
  {
    kind: 'github-token',
    name: 'a token of a GitHub App',
    source:
      'github.blog/changelog/2026-04-24-notice-about-upcoming-new-format-for-github-app-installation-tokens',
    starts: ['ghs_', 'ghu_'],
    pattern: /(?<![\w.-])gh[su]_\d{1,15}_(eyJ[\w-]{10,2000}\.[\w-]{10,4000}\.[\w-]{20,1500})/y,
    isReal: (value) => parseJson(value.split('.')[0] ?? '') !== undefined,
  },
  {
    kind: 'github-token',
    name: 'a fine-grained token of GitHub',
    source: gitleaks,
    starts: ['github_pat_'],
    pattern: /github_pat_([A-Za-z0-9]{22}_[A-Za-z0-9]{59})(?!\w)/y,
  },
  {
    kind: 'gitlab-token',
    name: 'a token of GitLab',
    source: 'docs.gitlab.com/security/tokens/#token-prefixes',
    starts: ['glpat-', 'gldt-', 'glrt-', 'glcbt-', 'glptt-', 'glft-', 'glimt-', 'glsoat-'],
    pattern:
      /(?<![\w-])gl(?:pat|dt|rt|cbt|ptt|ft|imt|soat)-([\w-]{20,300}(?:\.[0-9a-z]{2}\.?[0-9a-z]{7,9})?)/y,
  },
  {
    kind: 'gitlab-token',
    name: 'a secret of GitLab',
    source: 'docs.gitlab.com/security/tokens/#token-prefixes',
    starts: ['glagent-', 'gloas-', 'glffct-', 'GR1348941'],
    pattern: /(?<![\w-])(?:gl(?:agent|oas|ffct)-|GR1348941)([\w-]{20,100})/y,
  },
  {
    kind: 'slack-token',
    name: 'a token of Slack',
    source: 'docs.slack.dev/authentication/tokens',
    starts: ['xoxb-', 'xoxp-', 'xoxa-', 'xoxo-', 'xoxs-', 'xoxr-', 'xoxc-', 'xoxe-', 'xoxd-'],
    pattern: /(?<![\w-])xox[abposrced]-(?:\d{1,15}-){1,4}[A-Za-z0-9-]{16,200}/y,
  },
  {
    kind: 'slack-token',
    name: 'a token of Slack',
    source: 'docs.slack.dev/authentication/using-token-rotation',
    starts: ['xoxe.xox', 'xapp-'],
    pattern:
      /(?<![\w-])(?:xoxe\.xox[bp]-\d-[A-Za-z0-9]{100,200}|xapp-\d-[A-Z0-9]{8,15}-\d{8,15}-[a-f0-9]{40,80})/y,
  },
  {
    kind: 'slack-webhook',
    name: 'the address of a Slack webhook',
    source: 'docs.slack.dev/messaging/sending-messages-using-incoming-webhooks',
    starts: ['hooks.slack.com/', 'hooks.slack-gov.com/'],
    pattern:
      /hooks\.slack(?:-gov)?\.com\/((?:services|workflows|triggers)\/[A-Za-z0-9+/]{38,100})/y,
  },
  {
    kind: 'stripe-key',
    name: 'a live key of Stripe',
    source: 'docs.stripe.com/keys',
    starts: ['sk_live_', 'rk_live_', 'sk_prod_', 'rk_prod_'],
    pattern: /[sr]k_(?:live|prod)_([A-Za-z0-9]{16,250})/y,
  },
  {
    kind: 'webhook-secret',
    name: 'the secret of a webhook',
    source:
      'github.com/standard-webhooks/standard-webhooks, and docs.stripe.com/webhooks/signature',
    starts: ['whsec_'],
    pattern: /whsec_[A-Za-z0-9+/]{30,88}={0,2}(?![A-Za-z0-9+/])/y,
  },
  {
    kind: 'aws-key',
    name: 'an access key of AWS',
    source: 'docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html',
    starts: ['AKIA', 'ASIA', 'ABIA', 'ACCA'],
    pattern: /(?<![A-Za-z0-9])A(?:KIA|SIA|BIA|CCA)[A-Z2-7]{16}(?![A-Za-z0-9])/y,
  },
  {
    kind: 'aws-key',
    name: 'a secret access key of AWS',
    source: 'docs.aws.amazon.com/IAM/latest/UserGuide/id_credentials_access-keys.html',
    starts: ['ecretAccessKey', 'ecret_access_key', 'ECRET_ACCESS_KEY', 'ecret_key', 'ECRET_KEY'],
    pattern:
      /ecret_?(?:access_?)?key\\?["'`]{0,3}[ \t]{0,5}(?:=>?|:=?|,)[ \t]{0,5}\\?["'`]{0,3}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])/iy,
    isReal: isAwsSecret,
  },
  {
    kind: 'google-key',
    name: 'an API key of Google',
    source: 'docs.cloud.google.com/docs/authentication/api-keys',
    starts: ['AIza'],
    pattern: /(?<![\w-])AIza[\w-]{35}(?![\w-])/y,
  },
  {
    kind: 'google-key',
    name: 'a token of Google',
    source: 'github.com/secretlint/secretlint, secretlint-rule-gcp',
    starts: ['ya29.'],
    pattern: /(?<![\w.-])ya29\.([\w-]{40,2000})/y,
  },
  {
    kind: 'google-key',
    name: 'a client secret or refresh token of Google',
    source: 'developers.google.com/identity/protocols/oauth2/web-server',
    starts: ['GOCSPX-', '1//0'],
    pattern: /(?<![\w/.-])(?:GOCSPX-[\w-]{28}|1\/\/0[\w-]{60,160})(?![\w-])/y,
  },
  {
    kind: 'openai-key',
    name: 'a key of OpenAI',
    source: gitleaks,
    starts: ['sk-'],
    pattern: /(?<![\w-])sk-([\w-]{16,180}T3BlbkFJ[\w-]{16,180})/y,
  },
  {
    kind: 'anthropic-key',
    name: 'a key of Anthropic',
    source: gitleaks,
    starts: ['sk-ant-'],
    pattern: /(?<![\w-])sk-ant-[a-z]{2,10}\d{2}-([\w-]{60,200})/y,
  },
  {
    kind: 'npm-token',
    name: 'a token of npm',
    source: 'github.blog/changelog/2021-09-23-npm-has-a-new-access-token-format',
    starts: ['npm_'],
    pattern: /(?<![A-Za-z0-9])npm_([A-Za-z0-9]{36})(?![\w])/y,
  },
  {
    kind: 'pypi-token',
    name: 'a token of PyPI',
    source: 'pypi.org/help/#apitoken',
    starts: ['pypi-AgEI', 'pypi-AgEN'],
    pattern: /(?<![\w-])pypi-(AgE[IN][\w-]{50,1000})/y,
  },
  {
    kind: 'huggingface-token',
    name: 'a token of Hugging Face',
    source: 'huggingface.co/docs/hub/security-tokens',
    starts: ['hf_'],
    pattern: /(?<![A-Za-z0-9_])hf_([A-Za-z]{34})(?!\w)/y,
  },
  {
    kind: 'sendgrid-key',
    name: 'a key of SendGrid',
    source: 'www.twilio.com/docs/sendgrid/ui/account-and-settings/api-keys',
    starts: ['SG.'],
    pattern: /(?<![\w.])SG\.([\w-]{22}\.[\w-]{43})(?![\w-])/y,
  },
  {
    kind: 'discord-webhook',
    name: 'the address of a Discord webhook',
    source: 'docs.discord.com/developers/resources/webhook',
    starts: ['/api/webhooks/', '/webhooks/'],
    pattern:
      /(?<=discord(?:app)?\.com(?:\/api(?:\/v\d{1,2})?)?)(?:\/api)?\/webhooks\/\d{17,20}\/([\w-]{60,80})/y,
  },
  {
    kind: 'telegram-token',
    name: 'the token of a Telegram bot',
    source: 'core.telegram.org/bots/api#authorizing-your-bot',
    starts: [':AA'],
    pattern: /(?<=(?<!\d)\d{8,10}):(AA[\w-]{33})(?![\w-])/y,
  },
  {
    kind: 'linear-key',
    name: 'a key of Linear',
    source: 'linear.app/developers/graphql#personal-api-keys',
    starts: ['lin_api_', 'lin_oauth_'],
    pattern: /lin_(?:api|oauth)_([A-Za-z0-9]{40,64})/y,
  },
  {
    kind: 'atlassian-token',
    name: 'a token of Atlassian',
    source: gitleaks,
    starts: ['ATATT3'],
    pattern: /(?<![\w-])ATATT3([\w=-]{150,250})/y,
  },
  {
    kind: 'private-key',
    name: 'a private key',
    source: 'RFC 7468 section 10, RFC 4716 and the file format of OpenSSH',
    starts: ['-----BEGIN '],
    pattern:
      /-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:[\s+>|\\nr]{0,10}(?:Proc-Type|DEK-Info|Version|Comment):[^\n\\]{0,200}){0,4}[^-]{40,20000}(?:-----END [A-Z0-9 ]{1,60}-----)?/y,
    isReal: isPrivateKey,
  },
  {
    kind: 'jwt',
    name: 'a JWT',
    source: 'RFC 7519',
    starts: ['eyJ'],
    pattern: /(?<![\w.-])eyJ[\w-]{10,2000}\.eyJ[\w-]{10,8000}\.[\w-]{20,1500}(?![\w-])/y,
    isReal: isLiveJwt,
  },
]

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`)

/** The longest start first, as one may begin another. */
const starts = secretForms
  .flatMap((form) => form.starts)
  .toSorted((one, other) => other.length - one.length)
/** What may be at a place that has this start. */
const formsAt = new Map(
  starts.map((start) => [
    start,
    secretForms.filter((form) => form.starts.some((known) => start.startsWith(known))),
  ]),
)
const anyStart = new RegExp(starts.map(escaped).join('|'), 'g')

export type FoundForm = {
  readonly form: SecretForm
  readonly start: number
  readonly end: number
}

/** No honest text has so many candidates. What follows them counts without a check: checks take time. */
const maxChecks = 20_000

/** All places of a text that have one of the forms, in order. */
export const findForms = (text: string, now: number): FoundForm[] => {
  const found: FoundForm[] = []
  let checks = 0
  const check: Check = (form, value) => {
    checks += 1
    return checks > maxChecks || (form.isReal ?? isRandom)(value, now)
  }
  anyStart.lastIndex = 0
  for (let at = anyStart.exec(text); at; at = anyStart.exec(text)) {
    const hit = matchAt(text, at.index, at[0], check)
    if (hit) found.push(hit)
    anyStart.lastIndex = hit ? hit.end : at.index + 1
  }
  return found
}

type Check = (form: SecretForm, value: string) => boolean

const matchAt = (
  text: string,
  start: number,
  literal: string,
  check: Check,
): FoundForm | undefined => {
  for (const form of formsAt.get(literal) ?? []) {
    form.pattern.lastIndex = start
    const match = form.pattern.exec(text)
    if (match && check(form, match[1] ?? match[0]))
      return { form, start, end: start + match[0].length }
  }
  return undefined
}
