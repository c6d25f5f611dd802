import assert from 'node:assert/strict'
import { performance } from 'node:perf_hooks'
import { runCommand } from '../../daemon/agents/invoke.ts'
import { openGroup } from '../../daemon/agents/sandbox/limits.ts'
import { runProcess } from '../../daemon/agents/process.ts'
import type { Limits } from '../../shared/agents/limits.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { findSandbox } from '../../shared/sandbox/probe.ts'
import { temporaryFolder } from '../support/temporary.ts'

/* An agent that takes all it can, in a sandbox. */

const mb = 1024 ** 2

describe('an agent that takes too much', function () {
  this.timeout(60_000)
  before(async function () {
    if (process.platform !== 'linux') this.skip()
    if (!process.env['CI'] && 'missing' in (await findSandbox(process.env))) this.skip()
  })

  const run = async (script: string, limits: Limits) => {
    const home = await temporaryFolder()
    const { text } = await runCommand(
      {
        kind: 'command',
        command: ['sh', '-c', script],
        timeout: 30_000,
        concurrency: 1,
        output_limit: 1000,
        sandbox: 'required',
        network: 'off',
        limits,
      },
      '',
      {
        env: { ...process.env, HOME: home },
        homeFolder: `${home}/.doorward`,
        run: runProcess,
        getToken: async () => 'none',
        signal: new AbortController().signal,
      },
    )
    return text.trim()
  }

  const plenty = { memory: 1024 * mb, processes: 512, disk: 64 * mb }

  const isEnded = async (script: string, limits: Limits, words: RegExp) => {
    // The daemon must answer while it happens: the longest time between two turns of the event loop.
    let longest = 0
    let last = performance.now()
    const timer = setInterval(() => {
      longest = Math.max(longest, performance.now() - last)
      last = performance.now()
    }, 20)
    try {
      await assert.rejects(run(script, limits), (error) => {
        assert.ok(error instanceof DoorwardError, String(error))
        assert.equal(error.code, 'limit-reached', error.message)
        assert.match(error.message, words)
        return true
      })
    } finally {
      clearInterval(timer)
    }
    assert.ok(longest < 5000, `it did not answer for ${Math.round(longest)} ms`)
  }

  it('is ended by a limit of processes', async () => {
    const starts = 'while true; do sleep 20 & sleep 0.01; done'
    await isEnded(starts, { ...plenty, processes: 60 }, /more processes than its limit/)
  })

  it('is held by the kernel where its processes double, as a fork bomb', async function () {
    const group = openGroup(plenty)
    group.close()
    // Root without a control group has the watch alone, and this would take all numbers of the machine.
    if (process.getuid?.() === 0 && group.words.length === 0) this.skip()
    const bomb = 'f() { f | f & }; f; sleep 20'
    // The kernel may refuse its processes so soon that none is left to be counted.
    const how = await run(bomb, { ...plenty, processes: 60 }).then(
      () => 'ended',
      (error: unknown) => (error instanceof DoorwardError ? error.code : String(error)),
    )
    assert.ok(['limit-reached', 'agent-failed', 'ended'].includes(how), how)
    assert.equal(await run('echo free', plenty), 'free')
  })

  it('is ended by a limit of memory, of all its processes together', async () => {
    const eats = `perl -e '$x .= "x" x 1048576 while 1'`
    await isEnded(eats, { ...plenty, memory: 200 * mb }, /more memory than its limit/)
  })

  it('writes no file above its limit, on the disk or in memory', async () => {
    const writes = (path: string) => `exec dd if=/dev/zero of=${path} bs=1M count=10240`
    await isEnded(writes('large'), plenty, /wrote more than its limit/)
    const full =
      'for n in 1 2 3; do dd if=/dev/zero of=/tmp/$n bs=1M count=40 2>&1; done | grep -c "No space"'
    assert.equal(await run(full, plenty), '2')
  })

  it('is ended where its files together are above it, also those that it has removed or hidden', async () => {
    const fill = (name: string) => `head -c 4M /dev/zero >${name}`
    const more = 'n=$((n + 1)); sleep 0.05'
    const many = `while true; do ${fill('f$n')}; ${more}; done`
    const takes = 'eval "exec $d>f"; rm f; head -c 20M /dev/zero >&$d'
    const removed = `for d in 3 4 5 6 7; do ${takes}; sleep 0.1; done; sleep 20`
    const hidden = `while true; do mkdir d$n; ${fill('d$n/f')}; chmod 0 d$n; ${more}; done`
    const limits = { ...plenty, disk: 60 * mb }
    const rewrites = `for n in 1 2 3 4 5 6; do ${fill('f')}; sleep 0.5; done; echo whole`
    const [whole] = await Promise.all([
      run(rewrites, { ...plenty, disk: 5 * mb }),
      ...[many, removed, hidden].map(async (script) =>
        isEnded(script, limits, /wrote more than its limit/),
      ),
    ])
    assert.equal(whole, 'whole')
  })

  it('reaches its limit where the kernel refused its processes before they were counted', async () => {
    const group = openGroup(plenty)
    group.close()
    const burst = 'for n in $(seq 90); do sleep 1 & done || exit 3; sleep 0.01; exit 3'
    const limits = { ...plenty, processes: 8 }
    if (group.words.length > 0) await isEnded(burst, limits, /more processes than its limit/)
    // Without a control group nobody tells why they were refused.
    else await assert.rejects(run(burst, limits), DoorwardError)
  })

  it('does its ordinary work below the defaults', async () => {
    assert.equal(
      await run('for n in 1 2 3 4; do sleep 0.1 & done; wait; echo done', plenty),
      'done',
    )
  })
})
