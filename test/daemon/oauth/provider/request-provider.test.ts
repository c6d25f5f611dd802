import assert from 'node:assert/strict'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { customFetch } from 'oauth4webapi'
import { afterEach, describe, it } from 'mocha'
import { requestOptions } from '../../../../daemon/oauth/provider/request-provider.ts'
import { type Script, startScriptedProvider } from '../../../support/scripted-provider.ts'

describe('a request to a provider', () => {
  let provider: Awaited<ReturnType<typeof startScriptedProvider>>

  afterEach(() => provider.close())

  const collectGarbage = (): void => {
    setFlagsFromString('--expose-gc')
    ;(runInNewContext('gc') as () => void)()
  }

  const silences: Readonly<Record<string, Script[string]>> = {
    'that never answers': () => collectGarbage(),
    'that never ends its answer': (response) => {
      response.write('{')
      collectGarbage()
    },
  }
  for (const [what, handler] of Object.entries(silences))
    it(`to one ${what} ends in time, whatever the garbage collector does`, async () => {
      provider = await startScriptedProvider(() => ({ '/token': handler }))
      const { signal } = new AbortController()
      const url = `${provider.origin}/token`
      const options = requestOptions(url, signal, 300)
      await assert.rejects(options[customFetch](url, {}), {
        code: 'provider-unavailable',
        message: /did not answer in time/,
      })
    })

  it('ends with what it is made for', async () => {
    const control = new AbortController()
    provider = await startScriptedProvider(() => ({
      '/token': () => {
        collectGarbage()
        control.abort()
      },
    }))
    const url = `${provider.origin}/token`
    await assert.rejects(requestOptions(url, control.signal)[customFetch](url, {}), {
      code: 'provider-unavailable',
      message: /was not waited for/,
    })
  })
})
