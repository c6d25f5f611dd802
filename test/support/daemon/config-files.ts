import assert from 'node:assert/strict'
import {
  type Config,
  ConfigError,
  checkConfig,
  formatProblem,
} from '../../../shared/config/load.ts'
import { webhookSchema } from '../../../shared/config/webhook-schema.ts'
import { readYaml } from '../../../shared/config/yaml.ts'

/** The texts of the files, and the environment. */
export type Files = {
  readonly gateway?: string
  readonly agents?: string
  readonly webhooks?: string
  readonly schedules?: string
  readonly env?: NodeJS.ProcessEnv
}

export const twoAgents = 'agents:\n  echo: { kind: echo }\n  reviewer: { kind: echo }\n'

/** The configuration that these files are; without agents there are two. */
export const check = ({
  gateway = '',
  agents = twoAgents,
  webhooks = '',
  schedules = '',
  env = {},
}: Files): Config =>
  checkConfig(
    readYaml('gateway.yaml', gateway),
    readYaml('agents.yaml', agents),
    readYaml('webhooks.yaml', webhooks),
    env,
    undefined,
    readYaml('schedules.yaml', schedules),
  )

/** The lines a person would read. */
export const linesOf = (files: Files): string[] => {
  try {
    check(files)
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    assert.equal(error.code, 'config-invalid')
    return error.problems.map(formatProblem)
  }
}

/** One definition with these lines after its three required ones. */
export const webhook = (more = '', path = '/a', agent = 'echo', prompt = 'x'): string =>
  `webhooks:\n  - path: ${path}\n    agent: ${agent}\n    prompt_template: ${prompt}\n${more}`

/** What a webhook needs besides the name of its scheme. */
export const requiredFields: Readonly<Record<string, readonly string[]>> = {
  'google-pubsub': ['audience: https://a.example/', 'service_account: a@b.example'],
  'aws-sns': ['audience: arn:x'],
  'github-actions': ['claims: { repository: acme/shop }'],
  paypal: ['webhook_id: WH1'],
  plaid: ['client_id: c1', 'secret_env: A'],
  oidc: ['issuer: https://token.example', 'audience: https://a.example/'],
  'public-key': ['algorithm: ed25519', 'signature_header: X-Signature', 'public_key_env: A_KEY'],
}

/** A test for each: what is refused, the files, and the lines that a person reads. */
export const refuses = (table: Readonly<Record<string, readonly [Files, ...string[]]>>) => {
  for (const [what, [files, ...lines]] of Object.entries(table))
    it(`refuses ${what}`, () => assert.deepEqual(linesOf(files), lines))
}

export const webhookKeys = `known: ${Object.keys(webhookSchema.shape).join(', ')}`
export const kinds = 'echo, command, claude, codex, gemini, opencode, llm, openai, http'
export const kindsOr = kinds.replace(', http', ' or http')
export const notDuration = 'not a duration: write it like 500ms, 30s, 10m, 2h or 7d'
export const notSize = 'not a size: write it like 512kb, 25mb or 1gb'
export const notSecure = 'not an https URL (http is accepted for a loopback address only)'
