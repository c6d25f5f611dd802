import { readdir, readFile, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import type { CliKind } from '../../../shared/agents/clis.ts'
import { type HostRule, parseHostRule, toHost } from '../../../shared/agents/network.ts'
import { isLoopbackHost } from '../../../shared/network/addresses.ts'

/*
 * The hosts of the model of each agent program, by its variables, arguments and the configuration of its run: the
 * model's API, and where the program renews its login. Telemetry, updates and feedback are left out: all of them run
 * without. A base URL of the owner's replaces the usual hosts.
 */

type Env = Readonly<Record<string, string | undefined>>

/** The facts of a run that are known before it starts. */
export type ModelRun = {
  readonly kind: CliKind
  readonly env: Env
  readonly argv: readonly string[]
  /** The folder with the configuration that it has for the run. */
  readonly folder: string
}

const isSet = (value: string | undefined): boolean =>
  value !== undefined && !/^(|0|false|no|off)$/i.test(value)

/** https://docs.aws.amazon.com/general/latest/gr/bedrock.html, and those of logins by IAM Identity Center. */
const awsHosts = ({ AWS_REGION, AWS_DEFAULT_REGION }: Env): string[] => {
  const region = AWS_REGION || AWS_DEFAULT_REGION || 'us-east-1'
  return ['bedrock-runtime', 'bedrock', 'sts', 'oidc', 'portal.sso'].map(
    (service) => `${service}.${region}.amazonaws.com`,
  )
}

/** https://cloud.google.com/vertex-ai/docs/general/googleapi-access-methods */
const vertexHosts = (regions: readonly (string | undefined)[]): string[] => [
  'aiplatform.googleapis.com',
  ...regions.flatMap((region) => (region ? `${region}-aiplatform.googleapis.com` : [])),
  'oauth2.googleapis.com',
  'sts.googleapis.com',
  'iamcredentials.googleapis.com',
]

/** Hosts of OpenCode's providers that are named without a URL: https://models.dev */
const opencodeProviders: Readonly<Record<string, readonly string[]>> = {
  anthropic: ['api.anthropic.com', 'platform.claude.com', 'console.anthropic.com'],
  openai: ['api.openai.com', 'chatgpt.com', 'auth.openai.com'],
  google: ['generativelanguage.googleapis.com'],
  opencode: ['opencode.ai'],
  openrouter: ['openrouter.ai'],
  'github-copilot': ['api.githubcopilot.com', 'api.github.com', 'github.com'],
  groq: ['api.groq.com'],
  mistral: ['api.mistral.ai'],
  deepseek: ['api.deepseek.com'],
  xai: ['api.x.ai'],
  cerebras: ['api.cerebras.ai'],
}

type Settings = {
  /** URLs that name where a model is. */
  readonly urls: readonly string[]
  readonly text: string
}

type Table = Readonly<Record<CliKind, (run: ModelRun, settings: Settings) => readonly string[]>>

const usual: Table = {
  // https://code.claude.com/docs/en/network-config, …/amazon-bedrock, …/google-vertex-ai, …/microsoft-foundry
  claude: ({ env }, { urls, text }) => {
    const uses = (name: string) => isSet(env[name]) || text.includes(`"${name}"`)
    if (urls.length > 0) return []
    if (uses('CLAUDE_CODE_USE_BEDROCK')) return awsHosts(env)
    if (uses('CLAUDE_CODE_USE_VERTEX'))
      return vertexHosts([
        env['CLOUD_ML_REGION'],
        ...Object.entries(env).flatMap(([name, value]) =>
          name.startsWith('VERTEX_REGION_') ? value : [],
        ),
      ])
    if (uses('CLAUDE_CODE_USE_FOUNDRY')) {
      const { ANTHROPIC_FOUNDRY_RESOURCE: resource } = env
      const own = resource ? [`${resource}.services.ai.azure.com`] : []
      return [...own, 'login.microsoftonline.com']
    }
    return ['api.anthropic.com', 'claude.ai', 'platform.claude.com', 'console.anthropic.com']
  },
  // https://developers.openai.com/codex/config-reference
  codex: ({ env, argv }, { urls, text }) => {
    const words = [text, ...argv].join('\n')
    const [, provider = 'openai'] = /\bmodel_provider\s*=\s*["']?([\w-]+)/.exec(words) ?? []
    if (argv.includes('--oss') || /^(ollama|lmstudio)/.test(provider))
      return ['localhost:11434', 'localhost:1234']
    if (provider === 'amazon-bedrock') return awsHosts(env)
    if (provider !== 'openai' || /\bopenai_base_url\b/.test(words) || env['OPENAI_BASE_URL'])
      return urls.length > 0 ? [] : ['api.openai.com']
    return ['api.openai.com', 'chatgpt.com', 'auth.openai.com']
  },
  // https://geminicli.com/docs/get-started/authentication
  gemini: ({ env }, { urls, text }) => {
    if (urls.length > 0) return []
    if (isSet(env['GOOGLE_GENAI_USE_VERTEXAI']) || text.includes('vertex-ai'))
      return vertexHosts([env['GOOGLE_CLOUD_LOCATION']])
    if (env['GEMINI_API_KEY']) return ['generativelanguage.googleapis.com']
    // The login with Google; the last one names the account.
    const login = ['cloudcode-pa.googleapis.com', 'oauth2.googleapis.com', 'www.googleapis.com']
    return ['generativelanguage.googleapis.com', ...login]
  },
  // https://opencode.ai/docs/providers
  opencode: ({ argv }, { text, urls }) => {
    const words = [text, ...argv.map((word) => `"model": "${word.replace(/^(-m|--model)=/, '')}"`)]
    const models = words.join('\n').matchAll(/"(?:small_)?model"\s*:\s*"([\w.-]+)\//g)
    // The keys of auth.json.
    const logins = text.matchAll(/"([\w.-]+)"\s*:\s*\{\s*"type"\s*:\s*"(?:oauth|api)"/g)
    const names = new Set([...models, ...logins].flatMap(([, name]) => name ?? []))
    const found = [...names].flatMap((name) => opencodeProviders[name] ?? [])
    return found.length > 0 || urls.length > 0 ? found : ['opencode.ai']
  },
  // https://llm.datasette.io/en/stable/openai-models.html; its plugins have hosts of their own.
  llm: (_, { urls }) => (urls.length > 0 ? [] : ['api.openai.com']),
}

/** Names of variables and settings whose values say where a model is. */
const urlNames =
  /(?:base_?url|_endpoint|api_base|oss_base_url|llm_server)["']?\s*[:=]\s*["']?(https?:\/\/[^\s"',}\]]+)/gi

const findUrls = (text: string): string[] =>
  [...text.matchAll(urlNames)].flatMap(([, url]) => url ?? [])

/** A conversation that goes on has texts of strangers, which must not name a host. */
const transcripts = /^session\.jsonl?$/

const maxFiles = 60
const maxFileBytes = 256 * 1024

/** The texts of the configuration in the folder of a run, and of its login. */
const readSettings = async (folder: string, depth = 0): Promise<string[]> => {
  const texts: string[] = []
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  for (const entry of entries.slice(0, maxFiles)) {
    const path = join(folder, entry.name)
    if (entry.isDirectory() && depth < 3 && !/^(node_modules|work|tmp)$/.test(entry.name))
      texts.push(...(await readSettings(path, depth + 1)))
    if (!entry.isFile() || transcripts.test(entry.name)) continue
    if (!/^\.(jsonc?|toml|ya?ml)$/.test(extname(entry.name))) continue
    const { size } = await stat(path)
    if (size <= maxFileBytes) texts.push(await readFile(path, 'utf8').catch(() => ''))
  }
  return texts
}

const toRule = (url: string): HostRule[] => {
  if (!URL.canParse(url)) return []
  const parsed = new URL(url)
  const port = parsed.port || (parsed.protocol === 'http:' ? '80' : '443')
  return [{ host: toHost(parsed), isDomain: false, ports: [Number(port)] }]
}

/** The hosts that the model of a run needs. */
export const findModelHosts = async (run: ModelRun): Promise<HostRule[]> => {
  const text = (await readSettings(run.folder)).join('\n')
  const variables = Object.entries(run.env).map(([name, value]) => `${name}=${value}`)
  const urls = findUrls([text, ...variables, ...run.argv].join('\n'))
  const hosts = usual[run.kind](run, { urls, text })
  return [
    ...urls.flatMap(toRule),
    ...hosts.flatMap((host) => {
      const rule = parseHostRule(host)
      const ports = host.includes(':') ? rule?.ports : [443]
      return rule && ports ? [{ ...rule, ports }] : []
    }),
  ]
}

/** Ports of this machine that the words and the variables of an agent's entry name by a URL. */
export const findLocalPorts = (words: readonly string[]): number[] =>
  words
    .join('\n')
    .match(/\bhttps?:\/\/[^\s"',}\]/]+\]?(?::\d+)?/g)
    ?.flatMap(toRule)
    .flatMap(({ host, ports }) => (isLoopbackHost(host) ? ports : [])) ?? []
