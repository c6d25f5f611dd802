import { execFile } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** What came of one load: answers a second, times of an answer in milliseconds, answers by status. */
export type Load = {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  readonly answers: Readonly<Record<string, number>>
}

/** A signed delivery that is sent again and again, each time under a new delivery id. */
export type Delivery = { readonly body: Buffer; readonly secret: string; readonly event: string }

/** Servers run on the first core and the load on the last, so that neither takes the other's time. */
export const serverCore = '0'
export const loadCore = String(cpus().length - 1)

/** Sends deliveries to `url` with `callers` connections for `seconds`, by wrk. Throws without wrk. */
export const load = async (
  url: string,
  { body, secret, event }: Delivery,
  { callers, seconds }: { readonly callers: number; readonly seconds: number },
): Promise<Load> => {
  const folder = await mkdtemp(join(tmpdir(), 'doorward-wrk-'))
  try {
    const signature = createHmac('sha256', secret).update(body).digest('hex')
    await writeFile(join(folder, 'body'), body)
    await writeFile(join(folder, 'load.lua'), script(join(folder, 'body'), signature, event))
    const wrk = ['wrk', '--threads', '1', '--connections', String(callers)]
    const how = ['--duration', `${seconds}s`, '--timeout', '20s', '--latency']
    const what = ['--script', join(folder, 'load.lua'), url]
    const { stdout } = await run('taskset', ['-c', loadCore, ...wrk, ...how, ...what])
    const line = stdout.split('\n').find((text) => text.startsWith('RESULT '))
    if (line === undefined) throw new Error(`wrk said nothing of its result: ${stdout}`)
    return JSON.parse(line.slice('RESULT '.length)) as Load
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const script = (bodyFile: string, signature: string, event: string): string => `
local file = io.open(${JSON.stringify(bodyFile)}, "rb")
local body = file:read("*a")
file:close()
math.randomseed(os.time())
local run = string.format("%08x", math.random(0, 2147483647))
local count = 0
local headers = {
  ["Content-Type"] = "application/json",
  ["User-Agent"] = "GitHub-Hookshot/044aadd",
  ["Accept"] = "*/*",
  ["X-GitHub-Event"] = ${JSON.stringify(event)},
  ["X-GitHub-Hook-ID"] = "292430182",
  ["X-GitHub-Hook-Installation-Target-ID"] = "79929171",
  ["X-GitHub-Hook-Installation-Target-Type"] = "repository",
  ["X-Hub-Signature-256"] = "sha256=${signature}",
}
function request()
  count = count + 1
  headers["X-GitHub-Delivery"] = string.format("%s-0000-4000-8000-%012d", run, count)
  return wrk.format("POST", nil, headers, body)
end
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
  io.write(string.format('RESULT {"perSecond":%.1f,"p50":%.3f,"p99":%.3f,"answers":{%s}}\\n',
    summary.requests / (summary.duration / 1e6), latency:percentile(50) / 1000,
    latency:percentile(99) / 1000, table.concat(all, ",")))
end
`
