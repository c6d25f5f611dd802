import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { withTimeLimit } from '../../../daemon/util/concurrency.ts'

const server = `
const server = require('node:http').createServer((request, response) => {
  console.log('asked')
  setTimeout(() => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write('{"refresh_token":')
    response.end('"the next one"}')
  }, 20)
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))`

describe('a task with a time limit', () => {
  const never = new AbortController().signal

  it('has its answer when that came in time while we could not look', async () => {
    const program = spawn(process.execPath, ['-e', server], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    try {
      const [port] = (await once(program.stdout, 'data')) as [Buffer]
      const url = `http://127.0.0.1:${Number(port.toString())}/token`
      // What a first request loads and opens is done by then.
      await Promise.all([once(program.stdout, 'data'), (await fetch(url)).text()])
      const limitMs = 200
      const answer = await withTimeLimit(limitMs, never, async (signal) => {
        const asked = fetch(url, { method: 'POST', signal, body: 'grant_type=refresh_token' })
        await once(program.stdout, 'data')
        // From here on nothing of ours runs, as while the machine sleeps.
        for (const end = performance.now() + 2 * limitMs; performance.now() < end;);
        return (await asked).json()
      })
      assert.deepEqual(answer, { refresh_token: 'the next one' })
    } finally {
      program.kill()
      await once(program, 'exit')
    }
  })

  it('is no leak of listeners, however many run at once', async () => {
    const warnings: Error[] = []
    const note = (warning: Error): void => void warnings.push(warning)
    process.on('warning', note)
    await Promise.all(
      Array.from({ length: 30 }, () =>
        withTimeLimit(10_000, never, () => new Promise(setImmediate)),
      ),
    )
    process.off('warning', note)
    assert.deepEqual(warnings, [])
  })

  it('is ended when its time is over', async () => {
    const silent = createServer(() => undefined).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    try {
      const asked = withTimeLimit(20, never, async (signal) =>
        fetch(`http://127.0.0.1:${port}/`, { signal }),
      )
      await assert.rejects(asked, { name: 'TimeoutError' })
    } finally {
      silent.closeAllConnections()
      silent.close()
    }
  })
})
