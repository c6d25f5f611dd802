import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from './temporary.ts'

/*
 * A program named claude that keeps conversations as Claude Code does, without a model: it answers with all that was
 * said to it. A prompt with `do:<what>` makes it leave something else in the place of its transcript.
 */

const program = (secret: string, gate: string): string => `#!${process.execPath}
const fs = require('node:fs')
const path = require('node:path')
const { execFileSync } = require('node:child_process')
const argOf = (name) => process.argv.includes(name) ? process.argv[process.argv.indexOf(name) + 1] : undefined
const home = process.env.CLAUDE_CONFIG_DIR || path.join(process.env.HOME, '.claude')
const folder = path.join(home, 'projects', process.cwd().replaceAll(/[^A-Za-z0-9]/g, '-'))
const resumed = argOf('--resume')
const id = resumed ?? argOf('--session-id')
const file = id && path.join(folder, id + '.jsonl')
const fail = (text) => { process.stderr.write(text + '\\n'); process.exit(1) }
let said = []
if (resumed) {
  try {
    said = fs.readFileSync(file, 'utf8').trim().split('\\n').map((line) => JSON.parse(line).content)
  } catch { fail('No conversation found with session ID: ' + resumed) }
}
const prompt = fs.readFileSync(0, 'utf8')
const [, what = ''] = /do:([\\w-]+)/.exec(prompt) ?? []
if (what === 'refuse' && resumed) fail('this conversation cannot be continued')
const words = [...prompt.matchAll(/say:(\\w+)/g)].map(([, word]) => word)
said.push(words.join(' '))
const end = () => {
  if (file && !process.argv.includes('--no-session-persistence')) {
    fs.mkdirSync(folder, { recursive: true })
    fs.rmSync(file, { force: true })
    if (what === 'link') fs.symlinkSync(${JSON.stringify(secret)}, file)
    else if (what === 'pipe') execFileSync('mkfifo', [file])
    else if (what === 'folder') fs.mkdirSync(file)
    else if (what === 'linked-folder') {
      fs.rmSync(path.join(home, 'projects'), { recursive: true })
      fs.symlinkSync(path.dirname(${JSON.stringify(secret)}), path.join(home, 'projects'))
    } else if (what === 'big') {
      fs.writeFileSync(file, '')
      fs.truncateSync(file, 50 * 1024 * 1024)
    } else fs.writeFileSync(file, what === 'damage' ? '{' : said.map((one) => JSON.stringify({ type: 'user', content: one })).join('\\n') + '\\n')
  }
  const cost = 0.01 * said.length
  process.stdout.write(JSON.stringify({ type: 'result', subtype: 'success', result: said.join(','), session_id: id, num_turns: 1,
    total_cost_usd: cost, usage: { input_tokens: 10, output_tokens: 1 }, modelUsage: { 'fake-model': { costUSD: cost } } }))
}
const gate = ${JSON.stringify(gate)}
if (what !== 'wait') end()
else {
  fs.writeFileSync(path.join(gate, 'started-' + process.pid), '')
  fs.writeFileSync(path.join(gate, 'started'), '')
  const isOpen = () => fs.existsSync(path.join(gate, 'open'))
  const watcher = fs.watch(gate, () => { if (isOpen()) { watcher.close(); end() } })
  if (isOpen()) { watcher.close(); end() }
}
`

export type ClaudeStandIn = {
  /** For PATH. */
  readonly folder: string
  /** `do:wait` makes `started` and `started-<pid>` here, and goes on when there is `open`. */
  readonly gate: string
}

/** `do:link` and its like lead to the file `secret`. */
export const makeClaudeStandIn = async (secret: string): Promise<ClaudeStandIn> => {
  const folder = await temporaryFolder()
  const gate = join(folder, 'gate')
  await mkdir(gate)
  const path = join(folder, 'claude')
  await writeFile(path, program(secret, gate))
  await chmod(path, 0o755)
  return { folder, gate }
}
