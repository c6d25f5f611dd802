import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import type { Action } from '../../../tray/view.ts'
import type { Note } from '../../../tray/notifications/note.ts'
import {
  type Backend,
  type Notice,
  NotifyFailure,
  withFallback,
} from '../../../tray/notifications/backend.ts'
import { Notifier } from '../../../tray/notifications/notifier.ts'

/** A desktop that does as the test says. */
const scriptedBackend = () => {
  const news = new EventEmitter()
  const closed: string[] = []
  const calls: { notice: Notice; press: (button: number) => void; signal: AbortSignal }[] = []
  let answer: (signal: AbortSignal) => Promise<void> = async () => undefined
  let returned: () => void = () => undefined
  const backend: Backend = {
    show: async (notice, press, signal) => {
      calls.push({ notice, press, signal })
      news.emit('call')
      await answer(signal)
    },
    close: async (key) => {
      closed.push(key)
      news.emit('closed')
    },
    onReturn: (listener) => {
      returned = listener
    },
    stop: async () => undefined,
  }
  const untilCalls = async (count: number): Promise<void> => {
    while (calls.length < count) await once(news, 'call')
  }
  return {
    backend,
    calls,
    closed,
    untilClosed: async () => once(news, 'closed'),
    untilCalls,
    answers: (next: typeof answer) => {
      answer = next
    },
    comesBack: () => returned(),
  }
}

const untilEnd = async (signal: AbortSignal): Promise<never> => {
  await once(signal, 'abort')
  throw new NotifyFailure('silent')
}
const note = (body: string, more: Partial<Note> = {}): Note => ({ subject: 'T', body, ...more })

describe('the notifier', () => {
  const limits = { answerMs: 60_000, retryMs: 1, stopMs: 50 }
  let desktop: ReturnType<typeof scriptedBackend>
  let notifier: Notifier
  let actions: Action[]
  let troubles: (string | undefined)[]
  let news: EventEmitter

  const start = (more: Partial<typeof limits> = {}) => {
    desktop = scriptedBackend()
    actions = []
    troubles = []
    news = new EventEmitter()
    notifier = new Notifier(
      {
        backend: desktop.backend,
        iconFor: ({ failure }) => (failure ? '/bad.png' : '/good.png'),
        onAction: (action) => actions.push(action),
        onTrouble: (reason) => {
          troubles.push(reason)
          news.emit('trouble')
        },
      },
      { ...limits, ...more },
    )
  }
  const bodies = () => desktop.calls.map(({ notice }) => notice.body)
  afterEach(async () => notifier.stop())

  it('runs the action of the pressed button', () => {
    start()
    const buttons = [
      { label: 'Open', action: { do: 'show-event', id: 'a' } },
      { label: 'Retry', action: { do: 'retry-event', id: 'a' } },
    ] as const
    notifier.show(note('x', { buttons, failure: true }))
    const [call] = desktop.calls
    assert.deepEqual(call?.notice.buttons, ['Open', 'Retry'])
    assert.equal(call?.notice.icon, '/bad.png')
    call?.press(1)
    call?.press(7)
    assert.deepEqual(actions, [{ do: 'retry-event', id: 'a' }])
  })

  it('sends one at a time, and keeps the newest ten that wait', async () => {
    start()
    let finishFirst: () => void = () => undefined
    desktop.answers(async () => new Promise((resolve) => (finishFirst = resolve)))
    for (const body of '0123456789abc') notifier.show(note(body))
    assert.deepEqual(bodies(), ['0'])
    desktop.answers(async () => undefined)
    finishFirst()
    await desktop.untilCalls(11)
    assert.equal(bodies().join(''), '03456789abc')
  })

  it('keeps the last of those with the same key', async () => {
    start()
    let finishFirst: () => void = () => undefined
    desktop.answers(async () => new Promise((resolve) => (finishFirst = resolve)))
    notifier.show(note('1'))
    notifier.show(note('2', { key: 'k' }))
    notifier.show(note('3'))
    notifier.show(note('4', { key: 'k' }))
    desktop.answers(async () => undefined)
    finishFirst()
    await desktop.untilCalls(3)
    assert.deepEqual(bodies(), ['1', '3', '4'])
  })

  it('closes a note after those being sent, and drops it if it waits', async () => {
    start()
    let finishFirst: () => void = () => undefined
    desktop.answers(async () => new Promise((resolve) => (finishFirst = resolve)))
    notifier.show(note('1', { key: 'k' }))
    notifier.show(note('2', { key: 'k' }))
    notifier.show(note('3'))
    notifier.close('k')
    assert.deepEqual(desktop.closed, [])
    const closed = desktop.untilClosed()
    desktop.answers(async () => undefined)
    finishFirst()
    await closed
    assert.deepEqual(desktop.closed, ['k'])
    assert.deepEqual(bodies(), ['1', '3'])
  })

  it('reports once that notes do not appear and once that they do again, and loses none', async () => {
    start()
    desktop.answers(async () => {
      throw new NotifyFailure('no-service')
    })
    notifier.show(note('1'))
    await once(news, 'trouble')
    assert.equal(notifier.trouble, 'no notification service')
    await desktop.untilCalls(2)
    desktop.answers(async () => undefined)
    const healed = once(news, 'trouble')
    notifier.show(note('2'))
    await healed
    while (bodies().at(-1) !== '2') await desktop.untilCalls(desktop.calls.length + 1)
    assert.deepEqual([...new Set(bodies())], ['1', '2'])
    assert.equal(notifier.trouble, undefined)
    assert.equal(troubles.length, 2)
    assert.match(troubles[0] ?? '', /^notifications cannot be shown/)
    assert.equal(troubles[1], undefined)
  })

  it('tries again immediately when the service comes back', async () => {
    start({ retryMs: 60_000 })
    desktop.answers(async () => {
      throw new NotifyFailure('no-service')
    })
    notifier.show(note('1'))
    await once(news, 'trouble')
    desktop.answers(async () => undefined)
    desktop.comesBack()
    await once(news, 'trouble')
    assert.deepEqual(bodies(), ['1', '1'])
  })

  it('gives up after the time limit', async () => {
    start({ answerMs: 10, retryMs: 60_000 })
    desktop.answers(untilEnd)
    notifier.show(note('1'))
    await once(news, 'trouble')
    assert.equal(notifier.trouble, 'the notification service hangs')
  })

  it('stops in time, whatever the backend does', async () => {
    start()
    desktop.answers(async () => new Promise(() => undefined))
    notifier.show(note('1'))
    await notifier.stop()
    desktop.calls[0]?.press(0)
    assert.deepEqual(actions, [])
  })
})

describe('withFallback', () => {
  it('uses the second backend only where the first does not suit the machine', async () => {
    const [first, second] = [scriptedBackend(), scriptedBackend()]
    const either = withFallback(first.backend, second.backend)
    const show = async () =>
      either.show(
        { title: '', subject: '', body: '', icon: '', buttons: [], shownMs: 1 },
        () => undefined,
        new AbortController().signal,
      )
    first.answers(async () => {
      throw new NotifyFailure('unsuited')
    })
    await show()
    first.answers(async () => {
      throw new NotifyFailure('refused')
    })
    await assert.rejects(show(), { kind: 'refused' })
    assert.deepEqual([first.calls.length, second.calls.length], [2, 1])
  })
})
