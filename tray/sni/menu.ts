/* oxlint-disable no-underscore-dangle -- names of systray2 */
import { BusError } from '../dbus/connect.ts'
import type { ServedInterface, ServedMethod, ServedObject } from '../dbus/served-object.ts'
import { type Variant, variant } from '../dbus/marshal.ts'
import type { Item } from './protocol.ts'

/*
 * The menu as `com.canonical.dbusmenu`: the panel asks for the tree once and hears what changes. The
 * rows stay the same; only their text and whether they can be seen and clicked changes.
 * https://github.com/AyatanaIndicators/libdbusmenu, libdbusmenu-glib/dbus-menu.xml
 */

export const menuInterface = 'com.canonical.dbusmenu'

export type MenuObject = {
  readonly object: ServedObject
  /** Takes what a row shows now; true when that is news. */
  readonly change: (item: Item) => boolean
  /** Signature and values of the signal that tells the panel of these rows. */
  readonly changes: (ids: readonly number[]) => { signature: string; body: readonly unknown[] }
}

type Properties = Map<string, Variant>
type Layout = [id: number, properties: Properties, rows: Variant<Layout>[]]

const root = 0

/** A menu of these rows; `onClick` hears the number of a row that was clicked and may be. */
export const menuObject = (items: readonly Item[], onClick: (id: number) => void): MenuObject => {
  const rows = new Map<number, Item>([
    [root, { __id: root, title: '', enabled: true, hidden: false, items }],
  ])
  const collect = (item: Item): void => {
    rows.set(item.__id, item)
    item.items.forEach(collect)
  }
  items.forEach(collect)

  const rowOf = (id: unknown): Item => {
    const row = rows.get(Number(id))
    if (!row) throw new BusError('org.freedesktop.DBus.Error.InvalidArgs')
    return row
  }
  const layoutOf = (item: Item, depth: number, names: readonly string[]): Layout => {
    const row = rows.get(item.__id) ?? item
    const inner = depth === 0 ? [] : row.items
    return [
      row.__id,
      only(getProperties(row), names),
      inner.map((one) => variant('(ia{sv}av)', layoutOf(one, depth - 1, names))),
    ]
  }
  const event = (id: unknown, kind: unknown): void => {
    const row = rowOf(id)
    // Over the bus even what no person can see could be clicked.
    if (kind === 'clicked' && canBeClicked(row)) onClick(row.__id)
  }

  const methods: Readonly<Record<string, ServedMethod>> = {
    GetLayout: {
      takes: 'iias',
      gives: 'u(ia{sv}av)',
      run: ([id, depth, names]) => [1, layoutOf(rowOf(id), Number(depth), toTexts(names))],
    },
    GetGroupProperties: {
      takes: 'aias',
      gives: 'a(ia{sv})',
      run: ([ids, names]) => {
        const wanted = toList(ids).length === 0 ? [...rows.keys()] : toList(ids)
        const known = wanted.flatMap((id) => rows.get(Number(id)) ?? [])
        return [known.map((row) => [row.__id, only(getProperties(row), toTexts(names))])]
      },
    },
    GetProperty: {
      takes: 'is',
      gives: 'v',
      run: ([id, name]) => {
        const value = getProperties(rowOf(id)).get(String(name))
        if (!value) throw new BusError('org.freedesktop.DBus.Error.InvalidArgs')
        return [value]
      },
    },
    Event: {
      takes: 'isvu',
      gives: '',
      run: ([id, kind]) => {
        event(id, kind)
        return []
      },
    },
    EventGroup: {
      takes: 'a(isvu)',
      gives: 'ai',
      run: ([events]) => {
        const unknown = toList(events).filter((one) => !rows.has(Number(toList(one)[0])))
        for (const [id, kind] of toList(events).map(toList)) {
          if (rows.has(Number(id))) event(id, kind)
        }
        return [unknown.map((one) => toList(one)[0])]
      },
    },
    AboutToShow: { takes: 'i', gives: 'b', run: () => [false] },
    AboutToShowGroup: { takes: 'ai', gives: 'aiai', run: () => [[], []] },
  }
  const served: ServedInterface = {
    methods,
    properties: {
      Version: () => variant('u', 3),
      TextDirection: () => variant('s', 'ltr'),
      Status: () => variant('s', 'normal'),
      IconThemePath: () => variant('as', []),
    },
    signals: { ItemsPropertiesUpdated: 'a(ia{sv})a(ias)', LayoutUpdated: 'ui' },
  }
  return {
    object: { [menuInterface]: served },
    change: (item) => {
      const row = rows.get(item.__id)
      if (!row || item.__id === root) return false
      const { title, enabled, hidden } = item
      if (row.title === title && row.enabled === enabled && row.hidden === hidden) return false
      rows.set(item.__id, { ...row, title, enabled, hidden })
      return true
    },
    changes: (ids) => ({
      signature: 'a(ia{sv})a(ias)',
      body: [ids.map((id) => [id, getProperties(rowOf(id))]), []],
    }),
  }
}

const isSeparator = ({ title }: Item): boolean => title === '<SEPARATOR>'

const canBeClicked = (row: Item): boolean =>
  row.__id !== root && row.enabled && !row.hidden && row.items.length === 0 && !isSeparator(row)

const getProperties = (row: Item): Properties => {
  const visible = variant('b', !row.hidden)
  if (isSeparator(row))
    return new Map<string, Variant>([
      ['type', variant('s', 'separator')],
      ['visible', visible],
    ])
  return new Map<string, Variant>([
    ...(row.__id === root
      ? []
      : ([
          ['label', variant('s', row.title)],
          ['enabled', variant('b', row.enabled)],
          ['visible', visible],
        ] as const)),
    ...(row.items.length > 0 ? ([['children-display', variant('s', 'submenu')]] as const) : []),
  ])
}

/** Those asked for; an empty list asks for all. */
const only = (properties: Properties, names: readonly string[]): Properties =>
  names.length === 0
    ? properties
    : new Map([...properties].filter(([name]) => names.includes(name)))

const toList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

const toTexts = (value: unknown): string[] => toList(value).map(String)
