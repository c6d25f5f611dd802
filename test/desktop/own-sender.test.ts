import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { packageFolder } from '../../shared/version.ts'
import {
  type RunningDaemon,
  cleanEnvironment,
  startDaemon,
  untilFinished,
} from '../support/daemon/daemon.ts'

const secret = 'of the jobs'

describe('a script that sends, as the page about webhooks writes it', () => {
  let daemon: RunningDaemon
  let blocks: readonly string[]

  before(async () => {
    daemon = await startDaemon({
      webhooks: `webhooks:
  - { path: /webhook/jobs, agent: echo, secret_env: JOBS_SECRET, prompt_template: "{{event.job}} in {{event.took}}" }
`,
      env: `JOBS_SECRET=${secret}\n`,
    })
    const page = await readFile(new URL('docs/webhooks.md', packageFolder), 'utf8')
    const [, section = ''] = page.split('### From a script')
    blocks = [
      ...section
        .split('\n## ', 1)
        .join('')
        .matchAll(/^```sh\n([^]*?)^```/gm),
    ].map(([, block = '']) =>
      block
        .replaceAll('http://127.0.0.1:18789', daemon.url)
        .replaceAll('~/.doorward', daemon.home.root),
    )
  })
  after(async () => assert.equal(await daemon.stop(), 0))

  const shell = (block: string, env: Record<string, string> = {}) => {
    const child = spawn('sh', ['-c', block], {
      env: cleanEnvironment(env),
      // A group of its own: the end of the shell is not that of what it started.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let said = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (said += chunk.toString()))
    return { child, said: () => said, ended: once(child, 'close') }
  }

  it('is accepted, and refused with another secret', async () => {
    const [send = ''] = blocks
    const sent = shell(send, { JOBS_SECRET: secret })
    await sent.ended
    const { id, status } = JSON.parse(sent.said()) as { id: string; status: string }
    assert.equal(status, 'accepted')
    assert.equal((await untilFinished(daemon, id)).result, 'backup in 14 min')

    const refused = shell(send, { JOBS_SECRET: 'another' })
    await refused.ended
    assert.equal((JSON.parse(refused.said()) as { code: string }).code, 'signature-invalid')
  })

  it('receives the events', async () => {
    const [send = '', follow = ''] = blocks
    const following = shell(follow)
    const heard = new Promise<void>((resolve) =>
      following.child.stdout.on('data', () => {
        if (/"state":"done"/.test(following.said())) resolve()
      }),
    )
    await once(following.child.stdout, 'data')
    await shell(send, { JOBS_SECRET: secret }).ended
    await heard
    process.kill(-(following.child.pid ?? 0))
    await following.ended
    assert.match(following.said(), /^event: ?event$/m)
  })
})
