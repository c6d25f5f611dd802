import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Delivery } from './delivery.ts'

const run = promisify(execFile)

/** What came of one load: times of an answer in milliseconds, answers by status, `none` for lost ones. */
export type Load = {
  readonly seconds: number
  readonly requests: number
  readonly p50: number
  readonly p99: number
  readonly answers: Readonly<Record<string, number>>
}

export type Pressure = { readonly callers: number; readonly seconds: number }

/** Posts a delivery again and again, each time under a new id, by wrk: each caller waits for its answer. */
export const postAll = async (
  url: string,
  { body, headers }: Delivery,
  pressure: Pressure,
): Promise<Load> => {
  const folder = await mkdtemp(join(tmpdir(), 'doorward-wrk-'))
  try {
    await writeFile(join(folder, 'body'), body)
    return await wrk(folder, url, pressure, posting(join(folder, 'body'), headers))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Asks for the same again and again. */
export const getAll = async (
  url: string,
  headers: Delivery['headers'],
  pressure: Pressure,
): Promise<Load> => {
  const folder = await mkdtemp(join(tmpdir(), 'doorward-wrk-'))
  try {
    const script = `wrk.headers = ${luaTable(headers)}\n`
    return await wrk(folder, url, pressure, script)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const wrk = async (
  folder: string,
  url: string,
  { callers, seconds }: Pressure,
  script: string,
): Promise<Load> => {
  const file = join(folder, 'load.lua')
  await writeFile(file, script + counting)
  const how = ['--threads', '1', '--connections', String(callers), '--duration', `${seconds}s`]
  const { stdout } = await run('wrk', [
    ...how,
    '--timeout',
    '20s',
    '--latency',
    '--script',
    file,
    url,
  ])
  const line = stdout.split('\n').find((text) => text.startsWith('RESULT '))
  if (line === undefined) throw new Error(`wrk said nothing of its result: ${stdout}`)
  return JSON.parse(line.slice('RESULT '.length)) as Load
}

const luaTable = (headers: Delivery['headers']): string =>
  `{ ${Object.entries(headers)
    .map(([name, value]) => `[${JSON.stringify(name)}] = ${JSON.stringify(value)}`)
    .join(', ')} }`

const posting = (bodyFile: string, headers: Delivery['headers']): string => `
local file = io.open(${JSON.stringify(bodyFile)}, "rb")
local body = file:read("*a")
file:close()
local headers = ${luaTable(headers)}
local run = ${JSON.stringify(Date.now().toString(16).padStart(12, '0').slice(-8))}
local count = 0
function request()
  count = count + 1
  headers["X-GitHub-Delivery"] = string.format("%s-0000-4000-8000-%012d", run, count)
  return wrk.format("POST", nil, headers, body)
end
`

const counting = `
local threads = {}
function setup(thread) table.insert(threads, thread) end
function init() statuses = {} end
function response(status) statuses[status] = (statuses[status] or 0) + 1 end
function done(summary, latency)
  local all = {}
  for _, thread in ipairs(threads) do
    for status, n in pairs(thread:get("statuses")) do
      table.insert(all, string.format('"%s":%d', status, n))
    end
  end
  local errors = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  table.insert(all, string.format('"none":%d', errors))
  io.write(string.format('RESULT {"seconds":%.3f,"requests":%d,"p50":%.3f,"p99":%.3f,"answers":{%s}}\\n',
    summary.duration / 1e6, summary.requests, latency:percentile(50) / 1000,
    latency:percentile(99) / 1000, table.concat(all, ",")))
end
`
