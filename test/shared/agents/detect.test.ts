import assert from 'node:assert/strict'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { agentProgramWarnings } from '../../../shared/agents/program.ts'
import { detectAgentClis } from '../../../shared/agents/detect.ts'
import { checkConfig } from '../../../shared/config/load.ts'
import { readYaml } from '../../../shared/config/yaml.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const folderWith = async (...programs: readonly string[]): Promise<string> => {
  const folder = await temporaryFolder()
  for (const name of programs) {
    await writeFile(join(folder, name), '#!/bin/sh\n')
    await chmod(join(folder, name), 0o755)
  }
  return folder
}

describe('detectAgentClis', () => {
  it('finds programs on PATH that can be run, and runs none', async function () {
    if (process.platform === 'win32') return this.skip()
    const first = await folderWith('claude')
    await mkdir(join(first, 'codex'))
    await writeFile(join(first, 'gemini'), '')
    const second = await folderWith('claude', 'llm')
    const found = await detectAgentClis({ PATH: ['', first, '/nowhere', second].join(delimiter) })
    assert.deepEqual(
      found.map(({ kind, path }) => [kind, path]),
      [
        ['claude', join(first, 'claude')],
        ['codex', undefined],
        ['gemini', undefined],
        ['opencode', undefined],
        ['llm', join(second, 'llm')],
      ],
    )
    assert.ok((await detectAgentClis({})).every(({ path }) => path === undefined))
  })
})

describe('the warnings about agents that cannot start', () => {
  it('names what enabled webhooks need and how to install it', async function () {
    if (process.platform === 'win32') return this.skip()
    const own = await folderWith('gemini')
    const config = checkConfig(
      readYaml('gateway.yaml', ''),
      readYaml(
        'agents.yaml',
        `agents: { a: { kind: codex }, b: { kind: claude }, c: { kind: gemini, env: { PATH: "${own}" } }, d: { kind: llm } }`,
      ),
      readYaml(
        'webhooks.yaml',
        `webhooks:\n${[
          ['a', true],
          ['a', true],
          ['b', true],
          ['c', true],
          ['d', false],
        ]
          .map(
            ([agent, on], at) =>
              `  - { path: /${at}, agent: ${agent}, enabled: ${on}, prompt_template: x }`,
          )
          .join('\n')}`,
      ),
      {},
    )
    const env = { PATH: await folderWith('claude') }
    assert.deepEqual(await agentProgramWarnings(config, env, '/nowhere'), [
      {
        code: 'agent-program-missing',
        detail: 'agent a needs the program codex, which is not on PATH',
        hint: 'install it with: npm install -g @openai/codex',
        about: { agent: 'a' },
      },
    ])
  })
})
