import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { mkdir, readFile, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { LogFile } from '../../../daemon/log/log-file.ts'
import { temporaryHome } from '../../support/temporary.ts'
import { untilText } from '../../support/until-text.ts'

const megabyte = 1024 * 1024

describe('the file of the log', () => {
  it('keeps the last four files of 10 MB, the newest first', async () => {
    const home = await temporaryHome()
    await mkdir(home.logs, { recursive: true, mode: 0o700 })
    const complaints: string[] = []
    const file = new LogFile(
      home,
      (reason) => complaints.push(reason),
      () => '',
    )
    const rest = `${'.'.repeat(1000)}\n`
    for (let block = 0; block < 65; block += 1)
      file.write(`block ${block} ${rest}`.padEnd(megabyte - 1, rest).concat('\n'))
    await file.close()
    const names = ['daemon.log', ...[1, 2, 3, 4].map((number) => `daemon.log.${number}`)]
    assert.deepEqual((await readdir(home.logs)).toSorted(), names)
    const begin = async (name: string) =>
      Number(/^block (\d+) /.exec(await readFile(join(home.logs, name), 'utf8'))?.[1])
    assert.deepEqual(await Promise.all(names.map(begin)), [60, 50, 40, 30, 20])
    for (const name of names) assert.equal((await stat(join(home.logs, name))).mode & 0o777, 0o600)
    assert.deepEqual(complaints, [])
  })

  for (const [how, remove] of [
    ['was removed', rm],
    ['was moved away', async (log: string) => rename(log, `${log}.old`)],
    ['was removed with its folder', async (log: string) => rm(dirname(log), { recursive: true })],
  ] as const)
    it(`is created again when it ${how}, but not in a removed home`, async () => {
      const home = await temporaryHome()
      await mkdir(home.logs, { recursive: true, mode: 0o700 })
      const file = new LogFile(home, assert.fail, () => '')
      file.write('first\n')
      await untilText(home.logs, 'daemon.log', /first/)
      await remove(home.log)
      file.write('second\n')
      await untilText(home.logs, 'daemon.log', /^second\n$/)
      assert.equal((await stat(home.logs)).mode & 0o777, 0o700)

      await rm(home.root, { recursive: true })
      file.write('third\n')
      await file.close()
      await assert.rejects(stat(home.root), { code: 'ENOENT' })
    })

  it('does not bring back a home that is removed while it is opened', async () => {
    const home = await temporaryHome()
    await mkdir(home.logs, { recursive: true, mode: 0o700 })
    const complained = new Promise<string>((resolve) => {
      const file = new LogFile(home, resolve, () => '')
      // It is opened in a later turn.
      rmSync(home.root, { recursive: true })
      file.write('lost\n')
    })
    assert.equal(await complained, 'no such file')
    await assert.rejects(stat(home.root), { code: 'ENOENT' })
  })
})
