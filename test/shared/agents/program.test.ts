import assert from 'node:assert/strict'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { agentProgramWarnings } from '../../../shared/agents/program.ts'
import { checkConfig } from '../../../shared/config/load.ts'
import { readYaml } from '../../../shared/config/yaml.ts'
import { connect } from '../../../shared/client/client.ts'
import type { Status } from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { startDaemon } from '../../support/daemon/daemon.ts'
import { temporaryFolder, temporaryHome } from '../../support/temporary.ts'

const webhooksFor = (names: readonly string[], more = '') =>
  `webhooks:\n${names
    .map(
      (name) =>
        `  - { path: /${name}, agent: ${name}, prompt_template: x, secret_env: S${more} }\n`,
    )
    .join('')}`

describe('an agent that cannot start', function () {
  if (process.platform === 'win32') return

  let folder: string
  before(async () => {
    folder = await temporaryFolder()
    await writeFile(join(folder, 'runs'), '#!/bin/sh\n', { mode: 0o755 })
    await writeFile(join(folder, 'with space'), '#!/bin/sh\n', { mode: 0o755 })
    await writeFile(join(folder, 'is-text'), 'x\n', { mode: 0o644 })
    await mkdir(join(folder, 'sub'))
  })

  /** The warning and hint of one agent, on a PATH of this folder alone. */
  const warned = async (fields: object): Promise<string[]> => {
    const config = checkConfig(
      readYaml('gateway.yaml', ''),
      readYaml('agents.yaml', `agents: { a: ${JSON.stringify({ kind: 'command', ...fields })} }`),
      readYaml('webhooks.yaml', webhooksFor(['a'])),
      {},
    )
    const warnings = await agentProgramWarnings(config, { PATH: folder, OWN: '/nowhere' }, folder)
    return warnings.flatMap(({ code, detail, hint }) => [`${code} ${detail}`, hint])
  }
  const missing = 'agent-program-missing agent a cannot start:'
  const unset = 'agent-folder-missing agent a cannot start: its cwd'

  it('is none whose program and folder exist', async () => {
    assert.deepEqual(await warned({ command: ['runs'] }), [])
    assert.deepEqual(await warned({ command: [join(folder, 'with space')], cwd: 'sub' }), [])
    assert.deepEqual(await warned({ command: ['../runs'], cwd: 'sub' }), [])
    assert.deepEqual(await warned({ command: ['runs'], cwd: '~' }), [])
  })

  it('has a program that is not there, or is no program', async () => {
    const hint = /full path/
    for (const [fields, detail] of [
      [{ command: ['absent'] }, `${missing} the program absent is not on PATH`],
      [
        { command: ['runs'], env: { PATH: '/nowhere' } },
        `${missing} the program runs is not on PATH`,
      ],
      [
        { command: ['runs'], env: { PATH: 'env:OWN' } },
        `${missing} the program runs is not on PATH`,
      ],
      [
        { command: [`${folder}/is-text`] },
        `${missing} ${folder}/is-text is missing, or not executable`,
      ],
      [{ command: [folder] }, `${missing} ${folder} is missing, or not executable`],
      [{ command: ['./runs'] }, `${missing} ./runs is missing, or not executable`],
      [{ command: ['~/bin/x'] }, `${missing} ~/bin/x is missing, or not executable`],
    ] as const) {
      const [found, fix] = await warned(fields)
      assert.equal(found, detail)
      assert.match(fix ?? '', hint)
    }
  })

  it('has what only a shell takes apart', async () => {
    const [line, words] = await warned({ command: ['runs --secret canary | sort'] })
    assert.equal(
      line,
      `${missing} the program "runs …" is several words in one, and no shell takes them apart`,
    )
    assert.match(
      words ?? '',
      /^write each word apart, as \[runs, …\], or run a shell: \[sh, -c, "…"\]/,
    )
    assert.doesNotMatch(`${line}${words}`, /canary/)
  })

  it('has a folder that is missing or a file, and only the first is to be made', async () => {
    const at = async (cwd: string) => warned({ command: ['runs'], cwd })
    assert.deepEqual(await at('gone'), [
      `${unset} ${folder}/gone is not a folder: it does not exist`,
      `mkdir -p ${folder}/gone`,
    ])
    assert.deepEqual(await at('runs'), [
      `${unset} ${folder}/runs is not a folder`,
      'name a folder: doorward config edit agents',
    ])
    for (const cwd of ['/srv/{{event.repository.name}}', '$HOME/x', '~someone/x']) {
      const [detail, hint] = await at(cwd)
      assert.match(detail ?? '', /its cwd/)
      assert.doesNotMatch(hint ?? '', /mkdir/)
    }
  })

  it('is named by config check, status and doctor, as is a target without its secret', async () => {
    const home = await temporaryHome({
      env: 'S=4f6f1c0d9b7a4e52a9f1\n',
      agents: `agents:
  gone: { kind: command, command: [no-such-program-anywhere] }
  folder: { kind: command, command: [sh], cwd: "/srv/{{event.name}}" }
`,
      gateway: `targets:
  http:
    unset: { url: "https://a.example/", secret_env: UNSET }
`,
      webhooks: webhooksFor(
        ['gone', 'folder'],
        ', deliver_to: ["http:unset", "file:/no-such-folder/x.md"]',
      ),
    })
    const expected = [
      'agent gone cannot start: the program no-such-program-anywhere is not on PATH',
      'agent folder cannot start: its cwd /srv/{{event.name}} is not a folder',
      'target http:unset: UNSET is unset or empty',
      'the folder /no-such-folder does not exist',
    ]
    const checked = await run(['config', 'check'], { home })
    for (const text of expected)
      assert.ok(checked.stderr.includes(text), `${text}: ${checked.stderr}`)
    const daemon = await startDaemon({ home })
    try {
      const client = await connect(home)
      const { problems } = await client.get<Status>('/status')
      client.close()
      const details = problems.map(({ detail }) => detail).join('\n')
      for (const text of expected) assert.ok(details.includes(text), `${text}: ${details}`)
      const examined = await run(['doctor', '--json'], { home })
      assert.match(examined.stdout, /its cwd \/srv\/\{\{event\.name\}\} is not a folder/)
      assert.doesNotMatch(examined.stdout, /mkdir -p/)
    } finally {
      await daemon.stop()
    }
    await rm(home.root, { recursive: true })
  })
})
