import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { type ConfigName, toJsonSchema } from '../../shared/config/schema.ts'
import { initHome } from '../../shared/home/init-home.ts'
import { resolveHome } from '../../shared/home/home.ts'
import { describeTests, valueConditions } from '../../shared/filter/conditions.ts'
import { loadConfig } from '../../shared/config/load.ts'
import { packageFolder } from '../../shared/version.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { run } from './support/cli.ts'

const names: readonly ConfigName[] = ['webhooks', 'agents', 'gateway', 'schedules']

const packageFile = async (path: string): Promise<string> =>
  readFile(new URL(path, packageFolder), 'utf8')

/** Every key that a schema names, at any depth. */
const keysOf = (schema: unknown): string[] => {
  if (typeof schema !== 'object' || schema === null) return []
  const properties = 'properties' in schema ? Object.keys(schema.properties as object) : []
  return [...properties, ...Object.values(schema).flatMap(keysOf)]
}

describe('the sample configuration', () => {
  it('loads, with one webhook that is signed, filtered and shown on the desktop', async () => {
    const home = resolveHome(await temporaryFolder())
    await initHome(home)
    const { webhooks, agents } = await loadConfig(home, {})
    assert.deepEqual([...agents.keys()], ['echo'])
    assert.equal(webhooks.length, 1)
    const [webhook] = webhooks
    assert.equal(webhook?.path, '/webhook/github')
    assert.deepEqual(webhook.secretNames, ['GITHUB_WEBHOOK_SECRET'])
    assert.deepEqual(
      valueConditions(webhook.rules[0]?.filter ?? []).map((condition) => [
        condition.text,
        describeTests(condition),
      ]),
      [['pull_request.draft', '"false"']],
    )
    assert.deepEqual(webhook.rules[0]?.on, ['pull_request.opened'])
    assert.deepEqual(
      webhook.rules[0]?.targets.map(({ text }) => text),
      ['notify:desktop'],
    )
  })

  it('still loads when every commented setting is taken as it stands', async () => {
    const home = resolveHome(await temporaryFolder())
    await initHome(home)
    const { readYaml } = await import('../../shared/config/yaml.ts')
    const { fileSchemas } = await import('../../shared/config/schema.ts')
    const text = await packageFile('config/gateway.yaml')
    const active = text.replaceAll(/^# ?(?=( *#)|( *[a-z_]+:( |$)))/gm, '')
    const { value, problems } = readYaml('gateway.yaml', active)
    assert.deepEqual(problems, [])
    const parsed = fileSchemas.gateway.parse(value)
    assert.deepEqual(Object.keys(parsed.providers), ['github', 'example'])
    assert.deepEqual(parsed.server, {
      ...fileSchemas.gateway.parse({}).server,
      public_port: 18_790,
      public_url: 'https://example.ngrok.app',
    })
    assert.deepEqual(parsed.queue, {
      ...fileSchemas.gateway.parse({}).queue,
      creds_env: 'NATS_CREDS',
      nkey_env: 'NATS_NKEY',
      token_env: 'NATS_TOKEN',
      ca_env: 'NATS_CA',
    })
  })

  for (const name of names) {
    it(`names its schema first and documents every key (${name})`, async () => {
      const text = await packageFile(`config/${name}.yaml`)
      assert.ok(text.startsWith(`# yaml-language-server: $schema=./schema/${name}.json\n`))
      // The sample of webhooks explains the keys that a schedule has in common with a rule.
      const common = name === 'schedules' ? keysOf(toJsonSchema('webhooks')) : []
      const missing = keysOf(toJsonSchema(name))
        .filter((key) => !common.includes(key))
        .filter((key) => !new RegExp(`^[ #-]*${key}:`, 'm').test(text))
      assert.deepEqual(missing, [])
    })

    it(`has a current schema for editors (${name})`, async () => {
      const { code, stdout } = await run(['config', 'schema', name])
      assert.equal(code, 0)
      assert.equal(
        stdout,
        await packageFile(`config/schema/${name}.json`),
        'run: node scripts/write-configuration.mjs',
      )
    })
  }
})
