import assert from 'node:assert/strict'
import type { Message } from '../../../tray/dbus/message.ts'
import { answerCall } from '../../../tray/dbus/served-object.ts'
import { variant, writeValues } from '../../../tray/dbus/marshal.ts'
import { menuInterface, MenuObject } from '../../../tray/sni/menu.ts'
import type { Row } from '../../../tray/menu.ts'

const open: Row = { text: 'one_two', action: { do: 'open-logs' } }
const rowsWith = (unseen: Partial<Row> = {}): readonly Row[] => [
  { text: 'Ready' },
  { text: '', separator: true },
  {
    text: 'Recent',
    rows: [open, { text: 'unseen', action: { do: 'quit' }, hidden: true, ...unseen }],
  },
]

const begin = () => {
  const clicked: string[] = []
  const unread: (readonly number[])[] = []
  const menu = new MenuObject(
    rowsWith(),
    ({ text }) => clicked.push(text),
    (submenus) => unread.push(submenus),
  )
  const call = (
    member: string,
    signature: string,
    body: unknown[],
    sender = ':1.1',
  ): readonly unknown[] => {
    const message: Message = {
      type: 'call',
      serial: 1,
      sender,
      interface: menuInterface,
      member,
      signature,
      body,
    }
    const answer = answerCall(menu.object, message)
    // The answer must fit the declared signature.
    writeValues(answer.signature, answer.body)
    return answer.body
  }
  return { menu, call, clicked, unread }
}

describe('the menu on the bus', () => {
  it('returns the whole tree, or the part that is asked for', () => {
    const { call } = begin()
    const bool = (value: boolean) => variant('b', value)
    const row = (id: number, properties: [string, unknown][], rows: unknown[] = []) =>
      variant('(ia{sv}av)', [id, new Map(properties), rows])
    const labelled = (id: number, label: string, enabled: boolean, visible: boolean) =>
      row(id, [
        ['label', variant('s', label)],
        ['enabled', bool(enabled)],
        ['visible', bool(visible)],
      ])
    const [revision, layout] = call('GetLayout', 'iias', [0, -1, []])
    assert.equal(revision, 1)
    assert.deepEqual(layout, [
      0,
      new Map([['children-display', variant('s', 'submenu')]]),
      [
        labelled(1, 'Ready', false, true),
        row(2, [
          ['type', variant('s', 'separator')],
          ['visible', bool(true)],
        ]),
        row(
          3,
          [
            ['label', variant('s', 'Recent')],
            ['enabled', bool(true)],
            ['visible', bool(true)],
            ['children-display', variant('s', 'submenu')],
          ],
          [labelled(4, 'one__two', true, true), labelled(5, 'unseen', true, false)],
        ),
      ],
    ])
    const [, part] = call('GetLayout', 'iias', [3, 1, ['label']])
    assert.deepEqual(part, [
      3,
      new Map([['label', variant('s', 'Recent')]]),
      [row(4, [['label', variant('s', 'one__two')]]), row(5, [['label', variant('s', 'unseen')]])],
    ])
    assert.deepEqual(call('GetGroupProperties', 'aias', [[4, 99], ['enabled']]), [
      [[4, new Map([['enabled', bool(true)]])]],
    ])
    assert.deepEqual(call('GetProperty', 'is', [1, 'label']), [variant('s', 'Ready')])
    assert.deepEqual(call('AboutToShow', 'i', [3]), [false])
  })

  it('names the submenus to each panel that reads the first level alone, once', () => {
    const { call, unread } = begin()
    call('GetLayout', 'iias', [0, -1, []])
    call('GetLayout', 'iias', [3, 1, []])
    assert.deepEqual(unread, [])
    for (const sender of [':1.7', ':1.7', ':1.8']) call('GetLayout', 'iias', [0, 1, []], sender)
    assert.deepEqual(unread, [[3], [3]])
  })

  it('reports clicks on visible, enabled rows only', () => {
    const { call, clicked } = begin()
    const event = (id: number, kind = 'clicked') =>
      call('Event', 'isvu', [id, kind, variant('i', 0), 0])
    event(4)
    event(4, 'hovered')
    for (const id of [0, 1, 2, 3, 5]) event(id)
    assert.deepEqual(clicked, ['one_two'])
    const all = [4, 5, 77].map((id) => [id, 'clicked', variant('i', 0), 0])
    assert.deepEqual(call('EventGroup', 'a(isvu)', [all]), [[77]])
    assert.deepEqual(clicked, ['one_two', 'one_two'])
  })

  it('refuses unknown rows and properties', () => {
    const { call } = begin()
    const refusal = { code: 'org.freedesktop.DBus.Error.InvalidArgs' }
    assert.throws(() => call('GetLayout', 'iias', [77, -1, []]), refusal)
    assert.throws(() => call('Event', 'isvu', [77, 'clicked', variant('i', 0), 0]), refusal)
    assert.throws(() => call('GetProperty', 'is', [1, '__proto__']), refusal)
  })

  it('reports what has changed, and handles clicks accordingly', () => {
    const { menu, call, clicked } = begin()
    assert.equal(menu.show(rowsWith()), undefined)
    const changes = menu.show(rowsWith({ text: 'seen', hidden: false }))
    const { signature, body } = changes ?? { signature: '', body: [] }
    writeValues(signature, body)
    assert.deepEqual(body, [
      [
        [
          5,
          new Map<string, unknown>([
            ['label', variant('s', 'seen')],
            ['enabled', variant('b', true)],
            ['visible', variant('b', true)],
          ]),
        ],
      ],
      [],
    ])
    call('Event', 'isvu', [5, 'clicked', variant('i', 0), 0])
    assert.deepEqual(clicked, ['seen'])
  })
})
