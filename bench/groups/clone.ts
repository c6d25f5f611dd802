import { execFile } from 'node:child_process'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { cliProgram, packageFolder } from '../../shared/version.ts'
import { storeLogin } from '../../test/support/providers/stored-login.ts'
import { startModelServer } from '../../test/support/servers/model-server.ts'
import { reviewOf, startPullRequest } from '../../test/support/servers/pull-request.ts'
import { homeIn } from '../../test/support/temporary.ts'
import { hasProgram } from '../machine.ts'
import type { Note } from '../report/sample.ts'

/*
 * What a newcomer waits for: a clone of the last commit, its packages and its build, then one rule and the review
 * of a pull request, by the commands of docs/getting-started.md. GitHub and the model are servers of the tests.
 */

const run = promisify(execFile)
const row = 'clone to first review'
const token = 'of-before'

export const measureClone = async (folder: string, note: Note): Promise<void> => {
  const root = fileURLToPath(packageFolder)
  const hasCommit = await run('git', ['-C', root, 'rev-parse', 'HEAD']).then(
    () => true,
    () => false,
  )
  if (!(await hasProgram('npm')) || !hasCommit)
    return console.error(`${row} is left out: it needs npm and a clone with git`)
  const clone = await mkdtemp(join(folder, 'clone-'))
  const start = performance.now()
  const took = (measure: string) =>
    note({ row, measure, column: 'doorward', value: (performance.now() - start) / 1000 })
  try {
    await run('git', ['clone', '--quiet', '--no-local', root, clone])
    await run(process.execPath, ['scripts/setup.mjs'], { cwd: clone, maxBuffer: 2e7 })
  } catch (error) {
    return console.error(`${row} is left out: ${(error as Error).message.slice(0, 300)}`)
  }
  took('built after s')
  await review(folder, join(clone, cliProgram))
  took('reviewed after s')
  return undefined
}

const review = async (folder: string, cli: string): Promise<void> => {
  const scene = await startPullRequest(token)
  const model = await startModelServer()
  const home = await homeIn(await mkdtemp(join(folder, 'newcomer-')), { gateway: scene.gateway })
  const { DOORWARD_HOME: _, ...others } = process.env
  const env = { ...others, DOORWARD_HOME: home.root, DOORWARD_PORT: '0' }
  const doorward = async (...args: string[]) => run(process.execPath, [cli, ...args], { env })
  try {
    await storeLogin(home, 'github', 'a refresh token')
    const at = ['--base-url', `${model.origin}/v1`, '--model', 'm']
    await doorward('agent', 'add', 'openai', 'model', ...at)
    await doorward('webhook', 'add', 'github-review')
    await doorward('daemon', 'start')
    model.behave({
      kind: 'answers',
      text: reviewOf('Fine.', { path: 'hello.txt', line: 2, body: 'Whom does this greet?' }),
    })
    const payload = join(folder, 'payload.json')
    await writeFile(payload, await scene.push({ 'hello.txt': 'hello\nyou\n' }, 'opened'))
    const event = ['--event', 'pull_request', '--wait']
    await doorward('webhook', 'send', '/webhook/github-review', payload, ...event)
    if (scene.github.reviews.length === 0) throw new Error(`${row}: GitHub got no review`)
  } finally {
    await doorward('daemon', 'stop').catch(() => undefined)
    scene.close()
    model.close()
  }
}
