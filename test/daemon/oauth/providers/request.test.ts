import assert from 'node:assert/strict'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { customFetch } from 'oauth4webapi'
import { afterEach, describe, it } from 'mocha'
import { requestOptions, toExplanation } from '../../../../daemon/oauth/providers/request.ts'
import { DoorwardError } from '../../../../shared/errors.ts'
import { type Script, startScriptedProvider } from '../../../support/providers/scripted-provider.ts'

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

  const inTwoMinutes = () => new Date(Date.now() + 120_000).toUTCString()
  const pauses: readonly (readonly [string, () => string | undefined, number | undefined])[] = [
    ['seconds', () => '120', 120],
    ['a date', inTwoMinutes, 120],
    ['a date that is over', () => 'Thu, 01 Jan 1970 00:00:00 GMT', undefined],
    ['less than nothing', () => '-5', undefined],
    ['a word', () => 'soon', undefined],
    ['nothing', () => undefined, undefined],
  ]
  for (const [what, retryAfter, seconds] of pauses)
    it(`that is refused for now says until when, from ${what}`, async () => {
      const text = retryAfter()
      provider = await startScriptedProvider(() => ({
        '/token': (response) => {
          if (text !== undefined) response.setHeader('retry-after', text)
          response.writeHead(429).end()
        },
      }))
      const url = `${provider.origin}/token`
      const options = requestOptions(url, new AbortController().signal)
      const error: unknown = await options[customFetch](url, {}).catch((thrown: unknown) => thrown)
      assert.ok(error instanceof DoorwardError && error.code === 'provider-unavailable')
      const { retryAfterMs } = error
      if (seconds === undefined) assert.equal(retryAfterMs, undefined)
      else
        assert.ok(
          retryAfterMs && retryAfterMs > (seconds - 15) * 1000 && retryAfterMs <= seconds * 1000,
        )
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
      message: /before the request was cancelled/,
    })
  })
})

describe('the explanation of a provider', () => {
  it('is shown without what may be a token, also one of letters alone', () => {
    const words = 'client authentication failed, see documentation: unauthorized_client'
    assert.equal(toExplanation(words), words)
    // Made up, in the forms of GitHub, Slack and base64url.
    for (const token of [
      'gho_GkdOHpXRYPXEmXZZZRLr',
      'xoxb-GkdOHpXRYPXE',
      'aGkdOHpXRYPX',
      '0a1b2c3d4e5f',
    ])
      assert.equal(toExplanation(`no token ${token}.`), 'no token …', token)
  })
})
