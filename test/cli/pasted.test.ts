import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { checkConfig, ConfigError } from '../../shared/config/load.ts'
import { type ConfigName, fileSchemas } from '../../shared/config/schema.ts'
import { collectWarnings } from '../../shared/config/warnings.ts'
import { readYaml } from '../../shared/config/yaml.ts'
import { resolveHome } from '../../shared/home/home.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { run } from './support/cli.ts'
import { blocksOf, listPages, readPage } from './support/documents.ts'

type Values = Record<string, unknown>
type Entry = Values & { readonly path?: string; readonly rules?: unknown[] }
type Files = {
  readonly gateway: Values
  readonly agents: { agents: Values }
  readonly webhooks: { webhooks: Entry[] }
  readonly schedules: { schedules: Values[] }
}

const reviewPath = '/webhook/github-review'

/** A home after the first steps of getting-started.md. */
const freshHome = async (): Promise<Files> => {
  const bin = await temporaryFolder()
  await writeFile(join(bin, 'claude'), '#!/bin/sh\n', { mode: 0o700 })
  const env = { PATH: [bin, process.env['PATH']].join(delimiter) }
  const home = resolveHome(await temporaryFolder())
  const added = await run(['webhook', 'add', 'github-review', '--agent', 'claude'], { home, env })
  assert.equal(added.code, 0, added.stderr)
  const read = async (name: ConfigName) => {
    const text = await readFile(join(home.config, `${name}.yaml`), 'utf8')
    return readYaml(name, text).value ?? {}
  }
  return {
    gateway: (await read('gateway')) as Values,
    agents: (await read('agents')) as Files['agents'],
    webhooks: (await read('webhooks')) as Files['webhooks'],
    schedules: { schedules: [] },
  }
}

const isMap = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const merge = (into: Values, added: Values): void => {
  for (const [key, value] of Object.entries(added)) {
    const known = into[key]
    if (isMap(known) && isMap(value)) merge(known, value)
    else into[key] = value
  }
}

/** Puts a block where its page says: an entry into its list, a key into its map, a rule beside the review. */
const paste = (files: Files, block: unknown): void => {
  const { gateway, agents, webhooks, schedules } = files
  const entries = webhooks.webhooks
  if (Array.isArray(block)) {
    const rules = entries.find(({ path }) => path === reviewPath)?.rules ?? []
    for (const item of block as Entry[]) (item.path === undefined ? rules : entries).push(item)
    return
  }
  assert.ok(isMap(block))
  const keys = Object.keys(block)
  if (keys.join() === 'webhooks') paste(files, block['webhooks'])
  else if (keys.join() === 'schedules')
    schedules.schedules.push(...(block['schedules'] as Values[]))
  else if (keys.join() === 'agents') merge(agents, block)
  else if (keys.join() === 'env') merge(agents.agents, { claude: block })
  else if (keys.every((key) => Object.hasOwn(fileSchemas.gateway.shape, key))) merge(gateway, block)
  else {
    const signature = keys.some((key) => key.startsWith('signature_'))
      ? {}
      : { signature_scheme: 'github' }
    entries.push({
      path: `/webhook/pasted-${entries.length}`,
      agent: 'claude',
      // A sender with a key pair or an issuer has none.
      ...(keys.includes('public_key_env') || keys.includes('issuer')
        ? {}
        : { secret_env: 'GITHUB_WEBHOOK_SECRET' }),
      prompt_template: 'Review this.',
      ...signature,
      ...block,
    })
  }
}

/** What is there before the first block of this page. */
const filesBefore = (page: string, fresh: Files): Files => {
  const copy = structuredClone(fresh)
  // It shows the entry that the commands above it write, for an agent that they make.
  if (page === '../README.md')
    merge(copy.agents.agents, { claude: { kind: 'claude', tools: 'read', sandbox: 'required' } })
  return copy
}

/** A value for each variable that the files name. */
const fillEnvironment = (all: Files): NodeJS.ProcessEnv => {
  const names = JSON.stringify(all).match(/\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b/g) ?? []
  const value = '0123456789abcdef'.repeat(2)
  return {
    ...Object.fromEntries(names.map((name) => [name, value])),
    NATS_URL: 'tls://nats.example.com',
    DOORWARD_QUEUE_KEY: 'A'.repeat(43),
    // Raw, of Ed25519.
    ACME_PUBLIC_KEY: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
  }
}

/** Checks as `doorward config check`, with a value for each variable. Returns the codes of the warnings. */
const check = (all: Files): string[] => {
  const env = fillEnvironment(all)
  const file = (name: ConfigName) => readYaml(name, JSON.stringify(all[name]))
  const config = checkConfig(
    file('gateway'),
    file('agents'),
    file('webhooks'),
    env,
    undefined,
    file('schedules'),
  )
  return collectWarnings(config, env).map(({ code }) => code)
}

describe('the configuration in the documents', () => {
  it('can be pasted into a fresh home, all blocks of a page together', async () => {
    const fresh = await freshHome()
    const faults: string[] = []
    const warnings: Record<string, string[]> = {}
    let count = 0
    for (const page of await listPages()) {
      const all = filesBefore(page, fresh)
      for (const text of blocksOf(await readPage(page), 'yaml')) {
        const { value, problems } = readYaml(page, text)
        assert.deepEqual(problems, [], text)
        paste(all, value)
        count += 1
        try {
          const codes = check(all)
          if (codes.length > 0) warnings[page] = codes
        } catch (error) {
          if (!(error instanceof ConfigError)) throw error
          faults.push(`${page}: ${error.message}\n${text}`)
        }
      }
    }
    assert.deepEqual(faults, [])
    assert.ok(count > 40, String(count))
    // The pages say that these warnings come, and what to do about them.
    const risk = 'dangerous-combination'
    assert.deepEqual(warnings, {
      'approval.md': ['approve-without-source'],
      'fixes.md': [risk, risk, risk],
    })
  })

  it('names the variables that webhook add writes', async () => {
    for (const page of await listPages())
      for (const text of blocksOf(await readPage(page), 'yaml'))
        for (const [, scheme = '', name] of text.matchAll(
          /signature_scheme: (slack|sentry|github)\n *secret_env: (\w+)/g,
        ))
          assert.match(
            name ?? '',
            new RegExp(`^${scheme}((_REVIEW)?_WEBHOOK|_BOT_\\w+)_SECRET$`, 'i'),
            page,
          )
  })
})
