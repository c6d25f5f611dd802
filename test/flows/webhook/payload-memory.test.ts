import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'
import { githubBody, githubHeaders } from '../../support/servers/sign.ts'
import { temporaryFolder } from '../../support/temporary.ts'

// Windows has no such signal.
const describeOnPosix = process.platform === 'win32' ? describe.skip : describe

const secret = 'a-secret-of-the-webhook'

/** Has a process collect all it can and write what is left, each time it gets a signal. */
const writesItsMemory = (path: string) => `
const { setFlagsFromString, writeHeapSnapshot } = require('node:v8')
setFlagsFromString('--expose-gc')
const gc = require('node:vm').runInNewContext('gc')
process.on('SIGUSR2', () => {
  gc()
  gc()
  writeHeapSnapshot(${JSON.stringify(path)})
  process.stdout.write(process.memoryUsage().arrayBuffers + '\\n')
})
`

describeOnPosix('flow: the memory of a daemon whose events are over', function () {
  this.timeout(60_000)
  let daemon: RunningDaemon
  let snapshot: string

  before(async () => {
    const folder = await temporaryFolder()
    snapshot = join(folder, 'memory.heapsnapshot')
    await writeFile(join(folder, 'hook.cjs'), writesItsMemory(snapshot))
    daemon = await startDaemon({
      variables: { NODE_OPTIONS: `--require ${join(folder, 'hook.cjs')}` },
      env: `HOOK_SECRET=${secret}\n`,
      webhooks: `
webhooks:
  - { path: /hook, agent: echo, secret_env: HOOK_SECRET, signature_scheme: github, prompt_template: "prompt-{{event.number}}" }
`,
    })
  })
  after(async () => assert.equal(await daemon.stop(), 0))

  /** Bytes of buffers, and all strings, that are left. */
  const memory = async (): Promise<{ buffers: number; strings: string }> => {
    const { stdout } = daemon.process
    assert.ok(stdout)
    const written = once(stdout, 'data')
    daemon.process.kill('SIGUSR2')
    const [line] = (await written) as [Buffer]
    return { buffers: Number(line.toString()), strings: await readFile(snapshot, 'utf8') }
  }
  const post = async (payload: object, headers = githubHeaders) => {
    const body = githubBody('pull_request', payload)
    return send(`${daemon.url}/hook`, { headers: headers(body, secret), body })
  }

  /** One event that is done, and a delivery that is refused. */
  const deliver = async (payload: object): Promise<void> => {
    const accepted = await post(payload)
    assert.equal(accepted.status, 202)
    await untilFinished(daemon, String(accepted.json()['id']))
    const refused = await post(payload, (body) => githubHeaders(body, 'another-secret'))
    assert.equal(refused.status, 401)
  }

  it('has their prompts, the one buffer of payloads, and nothing else of them', async () => {
    await deliver({ number: 1 })
    const before = await memory()
    await deliver({ text: 'payload-canary', number: 4711, padding: 'p'.repeat(60_000) })
    const after = await memory()
    assert.match(after.strings, /prompt-4711/)
    assert.doesNotMatch(after.strings, /payload-canary|ppppp/)
    const more = after.buffers - before.buffers
    // The one buffer for payloads is there since the first.
    assert.ok(more < 30_000, `${more} bytes`)
  })
})
