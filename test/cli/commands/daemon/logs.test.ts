import assert from 'node:assert/strict'
import { appendFile, mkdir, rename, writeFile } from 'node:fs/promises'
import { resultOf, run, start, untilSaid } from '../../support/cli.ts'
import { startedHomes } from '../../support/started-homes.ts'

describe('cli: daemon logs', () => {
  const { newHome, startIn } = startedHomes()

  it('prints the last 50 lines of the log readable, and as they are with --json', async () => {
    const home = await newHome()
    await mkdir(home.logs, { mode: 0o700 })
    const lines = Array.from({ length: 5000 }, (_, n) =>
      JSON.stringify({ level: 30, time: 't', msg: `line ${n}` }),
    )
    await writeFile(home.log, `${lines.join('\n')}\n{"level":30,"msg":"half`)
    const text = await run(['daemon', 'logs'], { home })
    assert.equal(text.code, 0)
    assert.deepEqual(text.stdout.trimEnd().split('\n').slice(-1), ['t info  line 4999'])
    const json = await run(['daemon', 'logs', '--json'], { home })
    assert.equal(json.stdout, `${lines.slice(-50).join('\n')}\n`)
  })

  it('goes back into the file before when the log has just been rotated', async () => {
    const home = await newHome()
    await mkdir(home.logs, { mode: 0o700 })
    const lines = Array.from({ length: 100 }, (_, n) => JSON.stringify({ level: 30, msg: `${n}` }))
    const write = async (path: string, some: string[]) =>
      writeFile(path, some.map((line) => `${line}\n`).join(''))
    const logs = async () => (await run(['daemon', 'logs', '--json'], { home })).stdout
    const expected = `${lines.slice(-50).join('\n')}\n`
    await write(`${home.log}.1`, lines)
    assert.equal(await logs(), expected)
    await write(`${home.log}.1`, lines.slice(0, 97))
    await write(home.log, lines.slice(97))
    assert.equal(await logs(), expected)
    await write(home.log, lines.slice(20))
    assert.equal(await logs(), expected)
  })

  it('says that there is no log yet', async () => {
    const { code, stdout, stderr } = await run(['daemon', 'logs'], { home: await newHome() })
    assert.deepEqual([code, stdout], [0, ''])
    assert.match(stderr, /there is no log yet/)
  })

  it('follows the log over a restart of the daemon', async function () {
    if (process.platform === 'win32') return this.skip()
    const home = await newHome()
    const before = await startIn(home)
    const child = start(['daemon', 'logs', '-f', '--json'], { home })
    const ended = resultOf(child)
    await untilSaid(child, 'stdout', new RegExp(`"pid":${before.pid},.*"listening"`))
    // Two processes write it for a moment, each in its own time.
    const restarted = untilSaid(
      child,
      'stdout',
      /"finished"[^]*"listening"|"listening"[^]*"finished"/,
    )
    await run(['daemon', 'restart'], { home })
    assert.match(await restarted, /"restarting"/)
    child.kill('SIGINT')
    assert.equal((await ended).code, 130)
    return undefined
  })

  it('follows the log through a rotation, until interrupted', async function () {
    if (process.platform === 'win32') return this.skip()
    const home = await newHome()
    await mkdir(home.logs, { mode: 0o700 })
    const entry = (msg: string) => `${JSON.stringify({ level: 30, msg })}\n`
    await writeFile(home.log, entry('first'))
    const child = start(['daemon', 'logs', '-f'], { home })
    const ended = resultOf(child)
    await untilSaid(child, 'stdout', /first/)
    await appendFile(home.log, entry('second'))
    await untilSaid(child, 'stdout', /second/)
    await appendFile(home.log, entry('third'))
    await rename(home.log, `${home.log}.1`)
    await writeFile(home.log, entry('fourth'))
    await untilSaid(child, 'stdout', /fourth/)
    child.kill('SIGINT')
    const { code, stdout } = await ended
    assert.equal(code, 130)
    assert.deepEqual(stdout.match(/\w+$/gm), ['first', 'second', 'third', 'fourth'])
  })
})
