import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { collectWarnings } from '../../../shared/config/warnings.ts'
import { readEnvironment, listSecrets } from '../../../shared/config/environment.ts'
import { loadConfig } from '../../../shared/config/load.ts'
import { temporaryHome } from '../../support/temporary.ts'

const readFrom = async (env: string, processEnv: NodeJS.ProcessEnv = {}) =>
  readEnvironment(await temporaryHome({ env }), processEnv)

describe('the environment', () => {
  it('is read from .env with its quotes, comments and exports', async () => {
    const env = await readFrom(
      [
        '# a comment',
        'PLAIN=a b',
        'DOUBLE="a # b\\nc"',
        "SINGLE='a # $b\\n'",
        'export EXPORTED=x',
        'COMMENT=a # b',
        'SPACED =  a  ',
        'EQUALS=a=b==',
        'DOLLAR=$HOME',
        'EMPTY=',
        'not a line',
        'TWICE=1',
        'TWICE=2',
      ].join('\r\n'),
    )
    assert.deepEqual(
      { ...env },
      {
        PLAIN: 'a b',
        DOUBLE: 'a # b\nc',
        SINGLE: 'a # $b\\n',
        EXPORTED: 'x',
        COMMENT: 'a',
        SPACED: 'a',
        EQUALS: 'a=b==',
        DOLLAR: '$HOME',
        EMPTY: '',
        TWICE: '2',
      },
    )
  })

  it('of the process wins over .env, even when it is empty', async () => {
    const env = await readFrom('A=file\nB=file\nC=file\n', { A: 'process', B: '' })
    assert.deepEqual([env['A'], env['B'], env['C']], ['process', '', 'file'])
  })

  it('has no variable that nobody set', async () => {
    const env = await readFrom('')
    const names = ['toString', 'constructor', '__proto__', 'hasOwnProperty']
    for (const name of names) assert.equal(env[name], undefined)
    assert.deepEqual(listSecrets(names, env), [])
  })

  it('needs no .env', async () => {
    const home = await temporaryHome()
    await rm(home.env)
    assert.deepEqual({ ...(await readEnvironment(home, { A: '1' })) }, { A: '1' })
  })
})

describe('secrets', () => {
  it('of white space alone are unset', () => {
    const env = { A: '', B: ' \t\n', C: ' x ', D: undefined, E: 'y' }
    assert.deepEqual(listSecrets(['A', 'B', 'C', 'D', 'E', 'F'], env), [' x ', 'y'])
  })

  it('that are missing are warned about by their names, never their values', async () => {
    const entry = (path: string, more: string) =>
      `  - { path: ${path}, agent: echo, prompt_template: x, ${more} }\n`
    const home = await temporaryHome({
      webhooks: `webhooks:\n${[
        entry('/set', 'secret_env: SET'),
        entry('/none', 'deliver_to: log'),
        entry('/unset', 'secret_env: UNSET'),
        entry('/both', 'secret_env: [UNSET, SPACE]'),
        entry('/partly', 'secret_env: [SET, UNSET]'),
        entry('/off', 'enabled: false'),
      ].join('')}`,
    })
    const env = { SET: 'the-secret', SPACE: ' ' }
    assert.deepEqual(collectWarnings(await loadConfig(home, env), env), [
      {
        code: 'webhook-unsigned',
        detail:
          'webhook /none: it has no secret_env: anyone who knows its address can run the agent',
        hint: 'add secret_env to its entry in webhooks.yaml',
        about: { webhook: '/none' },
      },
      {
        code: 'secret-unset',
        detail: 'webhook /unset: UNSET is unset or empty; its deliveries are answered 503',
        hint: 'set UNSET in .env: doorward config edit env',
        about: { webhook: '/unset' },
      },
      {
        code: 'secret-unset',
        detail: 'webhook /both: UNSET, SPACE are unset or empty; its deliveries are answered 503',
        hint: 'set UNSET, SPACE in .env: doorward config edit env',
        about: { webhook: '/both' },
      },
      {
        code: 'secret-partly-unset',
        detail: 'webhook /partly: UNSET is unset or empty',
        hint: 'set UNSET in .env: doorward config edit env',
        about: { webhook: '/partly' },
      },
    ])
  })
})

describe('limits', () => {
  it('that leave no room for the largest body are warned about', async () => {
    const codes = async (gateway: string) => {
      const config = await loadConfig(await temporaryHome({ gateway }), {})
      return collectWarnings(config, {}).map(({ code }) => code)
    }
    assert.deepEqual(await codes('queue: { max_bytes: 10mb }\n'), ['body-limit-too-large'])
    assert.deepEqual(await codes('queue: { max_bytes: 25mb }\n'), [])
  })
})
