import assert from 'node:assert/strict'
import { appendFile, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { UsageLog } from '../../../daemon/usage/usage-log.ts'
import type { Log } from '../../../daemon/log/log.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const run = { agent: 'reviewer', rule: '/webhook/github review' }
const other = { agent: 'triage', rule: '/webhook/github triage' }
const usage = { inputTokens: 1000, outputTokens: 50, cachedTokens: 800, costUsd: 0.25 }
/** By the clock of this machine, as the log counts. */
const at = (month: number, day: number, hour = 12) => new Date(2026, month - 1, day, hour)
const since = at(5, 1)

describe('the log of what runs used', () => {
  let folder: string
  const warnings: unknown[] = []
  const log = { warn: (...what: unknown[]) => warnings.push(what) } as unknown as Log
  beforeEach(async () => {
    folder = join(await temporaryFolder(), 'state')
    warnings.length = 0
  })

  it('has a file for each month, with names and numbers, that the owner alone can read', async () => {
    const usageLog = new UsageLog(folder, log)
    usageLog.count(run, { ...usage, model: 'a-model' }, at(5, 31, 23))
    usageLog.count(run, usage, at(6, 1, 0))
    const may = join(folder, 'usage-2026-05.jsonl')
    assert.deepEqual(JSON.parse(await readFile(may, 'utf8')), {
      at: at(5, 31, 23).toISOString(),
      ...run,
      ...usage,
      model: 'a-model',
    })
    if (process.platform !== 'win32') {
      assert.equal((await stat(may)).mode & 0o777, 0o600)
      assert.equal((await stat(folder)).mode & 0o777, 0o700)
    }
  })

  it('sums up by rule, agent, model and day', async () => {
    const usageLog = new UsageLog(folder, log)
    usageLog.count(run, { ...usage, model: 'a-model' }, at(5, 31))
    usageLog.count(run, { ...usage, costUsd: 0.5 }, at(6, 1))
    usageLog.count(other, { inputTokens: 7, outputTokens: 3 }, at(6, 1))
    usageLog.count(run, usage, at(4, 30))
    const sum = { runs: 2, inputTokens: 2000, outputTokens: 100, cachedTokens: 1600, costUsd: 0.75 }
    const little = { runs: 1, inputTokens: 7, outputTokens: 3, cachedTokens: 0 }
    const report = await usageLog.report(since, 'rule')
    assert.deepEqual(report, {
      since: since.toISOString(),
      rows: [
        { key: run.rule, ...sum },
        { key: other.rule, ...little },
      ],
      total: { runs: 3, inputTokens: 2007, outputTokens: 103, cachedTokens: 1600, costUsd: 0.75 },
    })
    const keys = async (by: 'agent' | 'model' | 'day') =>
      (await usageLog.report(since, by)).rows.map(({ key, runs }) => [key, runs])
    assert.deepEqual(await keys('agent'), [
      ['reviewer', 2],
      ['triage', 1],
    ])
    assert.deepEqual(await keys('model'), [
      ['unknown', 2],
      ['a-model', 1],
    ])
    assert.deepEqual(await keys('day'), [
      ['2026-05-31', 1],
      ['2026-06-01', 2],
    ])
    assert.deepEqual(await new UsageLog(folder).report(since, 'rule'), report)
  })

  it('knows what was spent today and this month, also by another process and before a start', () => {
    const [before, now] = [new UsageLog(folder), new UsageLog(folder)]
    before.count(run, usage, at(5, 30))
    before.count(run, usage, at(5, 31))
    const spent = (log: UsageLog, of: object, when = at(5, 31)) => {
      const { day, month } = log.spent(of, when)
      return [day.costUsd, month.costUsd, month.runs]
    }
    assert.deepEqual(spent(now, {}), [0.25, 0.5, 2])
    now.count(other, { ...usage, costUsd: 1 }, at(5, 31))
    before.count(run, usage, at(5, 31))
    for (const log of [before, now]) {
      assert.deepEqual(spent(log, {}), [1.5, 1.75, 4])
      assert.deepEqual(spent(log, { rule: run.rule }), [0.5, 0.75, 3])
      assert.deepEqual(spent(log, { agent: 'triage' }), [1, 1, 1])
      assert.deepEqual(spent(log, {}, at(6, 1)), [undefined, undefined, 0])
      // The clock was set back.
      assert.deepEqual(spent(log, {}, at(5, 30)), [0.25, 1.75, 4])
    }
  })

  it('skips lines that are damaged', async () => {
    const usageLog = new UsageLog(folder)
    usageLog.count(run, usage, at(5, 31))
    const file = join(folder, 'usage-2026-05.jsonl')
    const absurd = { at: at(5, 31).toISOString(), ...run, inputTokens: -5, costUsd: 1e300 }
    await appendFile(file, `${JSON.stringify(absurd)}\nnull\n\u0000\u0000\n{"at":"2026-05-3`)
    usageLog.count(run, usage, at(5, 31))
    assert.equal((await usageLog.report(since, 'rule')).total.costUsd, 0.5)
    assert.equal(usageLog.spent({}, at(5, 31)).month.costUsd, 0.5)
  })

  it('counts on where it cannot write, says so once, and follows no link', async () => {
    await writeFile(folder, 'this is in the way')
    const usageLog = new UsageLog(folder, log)
    usageLog.count(run, usage, at(5, 31))
    usageLog.count(run, usage, at(5, 31))
    assert.equal(warnings.length, 1)
    assert.equal(usageLog.spent(run, at(5, 31)).day.costUsd, 0.5)
    await rm(folder)
    usageLog.count(run, usage, at(5, 31))
    assert.equal(usageLog.spent(run, at(5, 31)).day.costUsd, 0.75)
    const elsewhere = join(await temporaryFolder(), 'elsewhere')
    await writeFile(elsewhere, '')
    await symlink(elsewhere, join(folder, 'usage-2026-06.jsonl'))
    usageLog.count(run, usage, at(6, 1))
    assert.equal(await readFile(elsewhere, 'utf8'), '')
  })
})
