import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventRecord } from '../../shared/api/api.ts'
import { newEventId, newRecord } from '../../daemon/events/event-record.ts'
import { toLine } from '../../daemon/history/history-line.ts'
import { ask } from '../load/ask.ts'
import { median } from '../quantile.ts'
import type { Note } from '../report/sample.ts'
import type { Doorward } from '../servers/doorward.ts'

/* What people wait for while the history has 100,000 events of 30 days: lists, searches, one event, and usage. */

const count = 100_000
const keptMs = 30 * 86_400_000
const states = ['done', 'done', 'filtered', 'filtered', 'failed'] as const

export const measureHistory = async (
  { home, origin, authorized }: Doorward,
  times: number,
  note: Note,
): Promise<void> => {
  const oldest = await writeFiles(home)
  const paths = {
    'list ms': '/events?since=30d&limit=100',
    'list of one state ms': '/events?since=30d&limit=100&state=failed',
    'search ms': `/events?since=30d&q=${oldest.slice(0, 20)}`,
    'search that finds nothing ms': '/events?since=30d&rule=none&limit=1000',
    'one event ms': `/events/${oldest}`,
    'usage ms': '/usage?since=30d&by=day',
  }
  for (const [measure, path] of Object.entries(paths)) {
    const took: number[] = []
    for (let index = 0; index < times; index += 1) {
      const start = performance.now()
      await ask(`${origin}${path}`, authorized)
      took.push(performance.now() - start)
    }
    note({ row: 'with 100,000 past events', measure, column: 'doorward', value: median(took) })
  }
}

/** Returns the id of the oldest event. */
const writeFiles = async (home: Doorward['home']): Promise<string> => {
  const begin = Date.now() - keptMs + 60_000
  const files = new Map<string, string[]>()
  const add = (path: string, line: string) => {
    const lines = files.get(path) ?? []
    files.set(path, lines)
    lines.push(line)
  }
  const oldest = newEventId()
  for (let index = 0; index < count; index += 1) {
    const at = new Date(begin + ((keptMs - 120_000) * index) / count)
    const record = toRecord(index === 0 ? oldest : newEventId(), at, index)
    const day = record.receivedAt.slice(0, 10)
    add(join(home.root, 'history', `${day}.jsonl`), toLine(record, {}, at))
    const run = { at: record.receivedAt, agent: 'claude', rule: `/webhook/github ${record.rule}` }
    add(
      join(home.state, `usage-${day.slice(0, 7)}.jsonl`),
      JSON.stringify({ ...run, ...record.usage }),
    )
  }
  await mkdir(join(home.root, 'history'), { recursive: true, mode: 0o700 })
  await mkdir(home.state, { recursive: true, mode: 0o700 })
  for (const [path, lines] of files)
    await writeFile(path, `\n${lines.join('\n')}\n`, { mode: 0o600 })
  return oldest
}

const toRecord = (id: string, at: Date, index: number): EventRecord =>
  newRecord(id, at.toISOString(), {
    state: states[index % states.length] ?? 'done',
    webhook: '/webhook/github',
    rule: `review-${index % 7}`,
    subject: { key: `acme/shop#${index}`, title: 'Fix the checkout', kind: 'pull request' },
    agent: 'claude',
    attempts: 1,
    durations: { queuedMs: 1.2, agentMs: 43_211, deliverMs: 321 },
    promptSize: 12_345,
    size: 24_000,
    signed: true,
    usage: { model: 'a-model', inputTokens: 12_345, outputTokens: 2345, costUsd: 0.123 },
  })
