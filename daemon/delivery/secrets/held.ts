import type { Config } from '../../../shared/config/load.ts'
import type { AllowedKind } from '../../../shared/secret-kinds.ts'
import { listSecrets } from '../../../shared/config/environment.ts'
import { variablesIn } from '../../../shared/config/variables.ts'
import { hasPrivateKey } from '../../../shared/signatures/scheme.ts'

/** What doorward itself has: nothing of these may be allowed, but `env-value`. */
export type HeldKind = 'login-token' | 'client-secret' | 'bot-key' | 'api-token' | 'env-value'

/** A secret of this machine, and what it is called where it is found. */
export type HeldSecret = {
  readonly kind: HeldKind
  readonly name: string
  readonly value: string
}

export type SecretKind = HeldKind | AllowedKind

/** Shorter values are words such as `true`, and parts of others. */
const minLength = 8

/** Lines of a PEM file have 64 characters; shorter ones are found in other texts too. */
const minLineLength = 24

/**
 * The texts of a secret that open something: the value, the lines of a longer one, the password and the long parts
 * of the path of an address, and what stands behind `whsec_`.
 */
export const toNeedles = (value: string): string[] => {
  const whole = value.trim()
  const lines = whole
    .split(/\r?\n|\\n/)
    .map((line) => line.trim())
    .filter((line) => line.length >= minLineLength && !line.startsWith('-----'))
  const parts = whole.includes('\n') || whole.includes('\\n') ? lines : []
  const texts = [whole, ...parts, ...partsOfUrl(whole), whole.replace(/^(v1,)?whsec_/, '')]
  return [...new Set(texts)].filter((text) => text.length >= minLength)
}

const partsOfUrl = (text: string): string[] => {
  if (!/^[a-z][a-z0-9+.-]{1,20}:\/\/\S+$/i.test(text) || !URL.canParse(text)) return []
  const { password, pathname, search } = new URL(text)
  const values = [...new URLSearchParams(search).values()]
  const long = [...pathname.split('/'), ...values].filter((part) => part.length >= minLineLength)
  return [password, decodeURIComponent(password.replaceAll(/%(?![0-9A-F]{2})/gi, '%25')), ...long]
}

/** Variables of public keys, and of addresses of NATS, in which only a password is secret. */
const otherVariables = new Set(['ca_env', 'public_key_env', 'servers_env'])

const secretName =
  /key|token|secret|passw|auth|credential|cookie|private|signing|webhook|dsn|(^|_)(pass|pat)(_|$)/i

/** True for what a machine made: a model's name or a folder that an agent gets by `env:` is no secret. */
const isMade = (value: string): boolean =>
  /^[^\s/]{20,}$/.test(value) && /\d/.test(value) && /[A-Za-z]/.test(value)

/** The values of variables that this configuration uses as secrets. */
export const listConfigured = (config: Config, env: NodeJS.ProcessEnv): HeldSecret[] => {
  const { gateway, agents, webhooks } = config
  const found = new Map<string, HeldSecret>()
  const add = (name: string, value: string): void => {
    found.set(`${name} ${value}`, { kind: 'env-value', name: `the value of ${name}`, value })
  }
  const addAll = (names: readonly string[]): void => {
    for (const name of names) for (const value of listSecrets([name], env)) add(name, value)
  }
  addAll([...namesIn(gateway), ...namesIn(webhooks.map(({ source }) => source))])
  const { servers_env: servers } = gateway.queue
  for (const list of listSecrets([servers], env))
    for (const server of list.split(/[\s,]+/))
      for (const part of partsOfUrl(server)) add(servers, part)
  for (const { scheme, secretNames, verifyTokenNames } of webhooks)
    addAll([...(scheme.forms.some(hasPrivateKey) ? [] : secretNames), ...verifyTokenNames])
  for (const agent of agents.values()) {
    addAll(namesIn(agent))
    const given = (agent.kind === 'http' ? agent.headers : 'env' in agent && agent.env) || {}
    for (const [key, text] of Object.entries(given)) {
      const name = text.startsWith('env:') ? text.slice('env:'.length) : undefined
      const values = name === undefined ? [text] : listSecrets([name], env)
      const isNamed = secretName.test(key) || (name !== undefined && secretName.test(name))
      for (const value of values)
        if (!text.startsWith('oauth:') && (isNamed || isMade(value))) add(name ?? key, value)
    }
  }
  return [...found.values()]
}

/** The variables that settings name: under `…_env` or `…Env`, and in headers as `env:NAME`. */
const namesIn = (settings: unknown): string[] => {
  if (typeof settings !== 'object' || settings === null) return []
  return Object.entries(settings).flatMap(([key, value]: [string, unknown]) => {
    if (key === 'headers') return variablesIn(value as Readonly<Record<string, string>>)
    if (typeof value === 'object') return namesIn(value)
    const isName = /(_env|Env)$/.test(key) && !otherVariables.has(key)
    return isName && typeof value === 'string' ? [value] : []
  })
}
