import { stat } from 'node:fs/promises'
import { systemCode } from '../errors.ts'
import { isFixed, type Template } from '../templates.ts'
import { listSecrets } from '../config/environment.ts'
import type { Config } from '../config/load.ts'
import { isLoopbackUrl } from '../config/schema.ts'
import { parseSecretUrl, parseHeaderValue, parseSigningKey, parseSmtpServer } from './secrets.ts'
import type { SentKind, TargetSettings } from './schema.ts'
import { fixedFolder, makesFolders, resolveTargetFile, toServerKind } from './targets.ts'
import { variablesIn } from '../config/variables.ts'
import { type Fault, faultAbout, toWarning, type Warning } from '../config/warning.ts'
import { enabledRules } from '../schedules/definitions.ts'

/** Faults that prevent deliveries to the targets of enabled webhooks, as far as they show without sending. */
export const targetFaults = (config: Config, env: NodeJS.ProcessEnv): Fault[] => {
  const variables = new Map<string, TargetVariable>()
  for (const variable of listVariables(config))
    variables.set(`${variable.target} ${variable.name}`, variable)
  return [
    ...[...variables.values()].flatMap((variable) => variableFault(variable, env)),
    ...plainHttp(config),
    ...secretUrls(config),
  ]
}

type TargetVariable = {
  readonly name: string
  readonly target: string
  /** The form that its value must have, for messages. */
  readonly what: string
  readonly isValid?: (text: string) => boolean
}

type Form = Omit<TargetVariable, 'name' | 'target'>

/** The form of the variables of targets, by the key that names them. */
const forms: Readonly<Record<string, Form>> = {
  token_env: { what: 'a token' },
  url_env: {
    what: 'the https URL of a webhook',
    isValid: (text) => parseSecretUrl(text) !== undefined,
  },
  smtp_url_env: {
    what: 'smtps://user:password@host:465 or smtp://user:password@host:587 (with @ / # % in it written %40 %2F %23 %25)',
    isValid: (text) => parseSmtpServer(text) !== undefined,
  },
  secret_env: {
    what: 'a secret of Standard Webhooks: whsec_ and base64 of 24 to 64 bytes',
    isValid: (text) => parseSigningKey(text) !== undefined,
  },
}

const headerForm: Form = {
  what: 'the value of a header: one line of ASCII',
  isValid: (text) => parseHeaderValue(text) !== undefined,
}

const listVariables = (config: Config): TargetVariable[] =>
  enabledRules(config)
    .flatMap((rule) => rule.targets)
    .flatMap((target) => {
      if (!('address' in target)) return []
      return settingsOf(target, config.gateway.targets).flatMap(([name, settings]) => [
        ...Object.entries(forms).flatMap(([key, form]) => {
          const value = settings[key]
          return typeof value === 'string' ? [{ name: value, target: name, ...form }] : []
        }),
        ...variablesIn((settings['headers'] ?? {}) as Record<string, string>).map((variable) => ({
          name: variable,
          target: name,
          ...headerForm,
        })),
      ])
    })

type Settings = Readonly<Record<string, unknown>>

/** The settings that a target uses, by its name: of entries the one that it names, or all if an event chooses one. */
const settingsOf = (
  { kind, address }: { readonly kind: SentKind; readonly address: Template },
  targets: TargetSettings,
): [string, Settings][] => {
  const key = toServerKind(kind) as keyof TargetSettings
  if (key !== 'discord' && key !== 'http') return [[kind, targets[key]]]
  return Object.entries(targets[key])
    .filter(([name]) => !isFixed(address) || name === address.source)
    .map(([name, entry]) => [`${kind}:${name}`, entry])
}

const variableFault = (
  { name, target, what, isValid }: TargetVariable,
  env: NodeJS.ProcessEnv,
): Fault[] => {
  const fault = (code: string, what: string) =>
    faultAbout({ target })(code, what, `set ${name} in .env: doorward config edit env`)
  const [value] = listSecrets([name], env)
  if (value === undefined)
    return fault('target-secret-unset', `${name} is unset or empty; nothing can be delivered there`)
  if (isValid === undefined || isValid(value)) return []
  return fault('target-secret-wrong', `${name} is not ${what}; nothing can be delivered there`)
}

const plainHttp = ({ gateway }: Config): Fault[] =>
  Object.entries(gateway.targets.http)
    .filter(
      ([, { url }]) =>
        url !== undefined && new URL(url).protocol === 'http:' && !isLoopbackUrl(url),
    )
    .flatMap(([name]) =>
      faultAbout({ target: `http:${name}` })(
        'target-not-encrypted',
        'it uses http: answers can be read on the network',
        `use https in targets.http.${name}.url`,
      ),
    )

/** Addresses of incoming webhooks, with which anyone can write into a chat. */
const incomingWebhook =
  /^hooks\.slack\.com\/(services|triggers|workflows)\/|^discord(app)?\.com\/api\/webhooks\/|\.webhook\.office\.com\/|\.logic\.azure\.com\W.*[?&]sig=|\.powerplatform\.com\W.*[?&]sig=|^[^/]+\/hooks\/[a-z0-9]{26}$/

const secretUrls = ({ gateway }: Config): Fault[] =>
  Object.entries(gateway.targets.http)
    .filter(([, { url = '' }]) => incomingWebhook.test(url.replace(/^https?:\/\//, '')))
    .flatMap(([name]) =>
      faultAbout({ target: `http:${name}` })(
        'target-url-secret',
        'its URL is in gateway.yaml: anyone who has it can write there',
        `put it into .env, and the name of the variable into targets.http.${name}.url_env instead of url`,
      ),
    )

/** Warnings about file targets of enabled webhooks: a missing folder that is not created. */
export const fileTargetWarnings = async (
  config: Config,
  homeFolder: string,
): Promise<Warning[]> => {
  const found = await Promise.all(
    listFilePaths(config, homeFolder).map(async ({ text, source, folder }) => {
      if (makesFolders(source) || !(await isMissing(folder))) return []
      return faultAbout({ target: text })(
        'target-folder-missing',
        `the folder ${folder} does not exist; nothing can be delivered there`,
        'create it, or write a path relative to the home, where folders are created',
      )
    }),
  )
  return found.flat().map((fault) => toWarning(fault))
}

/** False for a folder that cannot be inspected. */
const isMissing = async (folder: string): Promise<boolean> =>
  stat(folder).then(
    () => false,
    (error: unknown) => systemCode(error) === 'ENOENT',
  )

/** The path of a file target, as far as no event chooses it. */
type FilePath = {
  /** The target as written in `deliver_to`. */
  readonly text: string
  /** The path with its placeholders. */
  readonly source: string
  readonly folder: string
  /** Undefined if an event chooses it. */
  readonly file: string | undefined
}

/** The file targets of enabled webhooks, each once. */
export const listFilePaths = (config: Config, homeFolder: string): FilePath[] => {
  const paths = new Map<string, FilePath>()
  for (const { targets } of enabledRules(config))
    for (const target of targets)
      if (target.kind === 'file') {
        const { text, path } = target
        const folder = fixedFolder(path, homeFolder)
        const file = isFixed(path) ? resolveTargetFile(path.source, homeFolder) : undefined
        paths.set(text, { text, source: path.source, folder, file })
      }
  return [...paths.values()]
}
