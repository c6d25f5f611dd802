import { variablesIn } from './agent-variables.ts'
import { isLoopbackUrl } from './config.ts'
import type { Warning } from './warning.ts'
import { secretsOf } from './environment.ts'
import type { Config } from './load-config.ts'
import { discordUrlOf, headerValueOf, signingKeyOf, smtpServerOf } from './target-secrets.ts'
import { type Template, isFixed } from './template.ts'

/** What keeps the targets of enabled webhooks from being delivered to, as far as that shows without trying. */
export const targetWarnings = (config: Config, env: NodeJS.ProcessEnv): Warning[] => {
  const needed = new Map<string, Needed>()
  for (const variable of variablesOf(config))
    needed.set(`${variable.target} ${variable.name}`, variable)
  return [
    ...[...needed.values()].flatMap((variable) => variableWarning(variable, env)),
    ...plainHttp(config),
  ]
}

type Needed = {
  readonly name: string
  readonly target: string
  /** What it holds, in words, and whether this is that. */
  readonly what: string
  readonly isGood?: (text: string) => boolean
}

const variablesOf = ({ webhooks, gateway: { targets } }: Config): Needed[] =>
  webhooks
    .filter(({ enabled }) => enabled)
    .flatMap((webhook) => webhook.targets)
    .flatMap((target): Needed[] => {
      const named = (name: string | undefined, rest: Omit<Needed, 'name' | 'target'>, of = '') =>
        name === undefined ? [] : [{ name, target: `${target.kind}${of}`, ...rest }]
      switch (target.kind) {
        case 'none':
        case 'log':
        case 'notify':
        case 'file':
          return []
        case 'slack':
        case 'github':
        case 'telegram':
          return named(targets[target.kind].token_env, { what: 'a token' })
        case 'email':
          return named(targets.email.smtp_url_env, {
            what: 'smtps://user:password@host:465 or smtp://user:password@host:587 (with @ / # % in it written %40 %2F %23 %25)',
            isGood: (text) => smtpServerOf(text) !== undefined,
          })
        case 'discord':
          return chosen(target.address, targets.discord).flatMap(([name, entry]) =>
            named(
              entry.url_env,
              {
                what: 'the https URL of a webhook, as Discord shows it',
                isGood: (text) => discordUrlOf(text) !== undefined,
              },
              `:${name}`,
            ),
          )
        case 'http':
          return chosen(target.address, targets.http).flatMap(([name, entry]) => [
            ...named(
              entry.secret_env,
              {
                what: 'a secret of Standard Webhooks: whsec_ and base64 of 24 to 64 bytes',
                isGood: (text) => signingKeyOf(text) !== undefined,
              },
              `:${name}`,
            ),
            ...variablesIn(entry.headers ?? {}).flatMap((variable) =>
              named(
                variable,
                {
                  what: 'the value of a header: one line of ASCII',
                  isGood: (text) => headerValueOf(text) !== undefined,
                },
                `:${name}`,
              ),
            ),
          ])
      }
    })

/** The entry that a target names, or all that an event may choose from. */
const chosen = <Entry>(
  address: Template,
  entries: Readonly<Record<string, Entry>>,
): [string, Entry][] =>
  Object.entries(entries).filter(([name]) => !isFixed(address) || name === address.source)

const variableWarning = ({ name, target, what, isGood }: Needed, env: NodeJS.ProcessEnv) => {
  const hint = `set ${name} in .env: doorward config edit env`
  const [value] = secretsOf([name], env)
  if (value === undefined)
    return [
      {
        code: 'target-secret-unset',
        detail: `target ${target}: ${name} is unset or empty; nothing can be delivered there`,
        hint,
      },
    ]
  if (isGood === undefined || isGood(value)) return []
  return [
    {
      code: 'target-secret-wrong',
      detail: `target ${target}: ${name} does not hold ${what}; nothing can be delivered there`,
      hint,
    },
  ]
}

const plainHttp = ({ gateway }: Config): Warning[] =>
  Object.entries(gateway.targets.http)
    .filter(([, { url }]) => new URL(url).protocol === 'http:' && !isLoopbackUrl(url))
    .map(([name]) => ({
      code: 'target-not-encrypted',
      detail: `target http:${name} is reached by http: answers can be read on their way`,
      hint: `use https in targets.http.${name}.url`,
    }))
