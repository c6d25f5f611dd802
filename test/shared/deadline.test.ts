import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { withDeadline } from '../../shared/deadline.ts'

const long = 60_000
const never = new Promise<never>(() => undefined)

describe('work with a deadline', () => {
  it('gives its own result or error when it ends in time', async () => {
    assert.equal(await withDeadline(long, Promise.resolve(1), assert.fail), 1)
    await assert.rejects(withDeadline(long, Promise.reject(new Error('own')), assert.fail), /own/)
  })

  it('gives what comes in its stead when it does not, be that an error', async () => {
    assert.equal(await withDeadline(1, never, () => 'late'), 'late')
    const fail = () => {
      throw new Error('too late')
    }
    await assert.rejects(withDeadline(1, never, fail), /too late/)
  })

  it('may still be waited for after it was hurried', async () => {
    let hurry: (value: string) => void = () => undefined
    const work = new Promise<string>((resolve) => (hurry = resolve))
    const late = async () => {
      hurry('hurried')
      return work
    }
    assert.equal(await withDeadline(1, work, late), 'hurried')
  })

  it('fails later without an unhandled rejection, and keeps no process alive once it has ended', () => {
    const code = `
      import { withDeadline } from ${JSON.stringify(new URL('../../shared/deadline.js', import.meta.url).href)}
      await withDeadline(${long}, Promise.resolve(), () => {})
      let fail
      const work = new Promise((_, reject) => (fail = reject))
      await withDeadline(1, work, () => {})
      fail(new Error('late'))
      console.log('ended')`
    const args = ['--input-type=module', '--eval', code]
    const { status, stdout, stderr } = spawnSync(process.execPath, args, {
      encoding: 'utf8',
      timeout: long / 2,
    })
    assert.deepEqual([status, stdout, stderr], [0, 'ended\n', ''])
  })
})
