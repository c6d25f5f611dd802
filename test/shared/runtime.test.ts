import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Status } from '../../shared/api/api.ts'
import { startDaemon } from '../support/daemon/daemon.ts'

describe('SIGUSR1, by which Node opens its debugger', function () {
  before(function () {
    if (process.platform === 'win32') this.skip()
  })

  it('opens none of the daemon, which goes on', async () => {
    const daemon = await startDaemon()
    daemon.process.kill('SIGUSR1')
    assert.equal((await daemon.client.get<Status>('/status')).url, daemon.url)
    assert.equal(await daemon.stop(), 0)
    assert.equal(daemon.stderr(), '')
  })

  it('opens none where that is asked for, and does elsewhere', async () => {
    const module = new URL('../../shared/runtime.js', import.meta.url).href
    const script = (first: string) => `${first}
      setInterval(() => {}, 60000)
      process.kill(process.pid, 'SIGUSR1')
      process.stderr.write('sent\\n')`
    const said = async (first: string, end: RegExp): Promise<string> => {
      // Any port will do.
      const args = ['--inspect-port=0', '--input-type=module', '-e', script(first)]
      const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
      let text = ''
      for await (const chunk of child.stderr) {
        text += String(chunk)
        if (end.test(text)) break
      }
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      return text
    }
    const shut = `const { ignoreSigusr1 } = await import('${module}'); ignoreSigusr1()
      process.on('SIGUSR1', () => process.stderr.write('heard\\n'))`
    assert.match(await said('', /Debugger listening/), /Debugger listening/)
    assert.equal(await said(shut, /heard/), 'sent\nheard\n')
  })
})
