/* oxlint-disable no-underscore-dangle -- names of systray2 */
import { BusError } from '../dbus/connect.ts'
import type { ServedMethod, ServedObject } from '../dbus/served-object.ts'
import { type Variant, variant } from '../dbus/marshal.ts'
import type { Item } from './protocol.ts'

/*
 * The menu as `com.canonical.dbusmenu`: the panel reads the tree once and is notified of changes. The
 * rows are fixed; only their text, visibility and whether a click is possible change.
 * https://github.com/AyatanaIndicators/libdbusmenu, libdbusmenu-glib/dbus-menu.xml
 */

export const menuInterface = 'com.canonical.dbusmenu'

type Properties = Map<string, Variant>
type Layout = [id: number, properties: Properties, rows: Variant<Layout>[]]

const root = 0

/** A menu of these rows; `onClick` gets the number of a row that can be clicked and was. */
export class MenuObject {
  readonly object: ServedObject
  readonly #rows = new Map<number, Item>()
  readonly #onClick: (id: number) => void

  constructor(items: readonly Item[], onClick: (id: number) => void) {
    this.#onClick = onClick
    this.#add({ __id: root, title: '', enabled: true, hidden: false, items })
    this.object = {
      [menuInterface]: {
        methods: { ...this.#readMethods(), ...this.#eventMethods() },
        properties: {
          Version: () => variant('u', 3),
          TextDirection: () => variant('s', 'ltr'),
          Status: () => variant('s', 'normal'),
          IconThemePath: () => variant('as', []),
        },
        signals: { ItemsPropertiesUpdated: updateSignature, LayoutUpdated: 'ui' },
      },
    }
  }

  /** Replaces what a row shows; true when that is a change. */
  change({ __id, title, enabled, hidden }: Item): boolean {
    const row = this.#rows.get(__id)
    if (!row || __id === root) return false
    if (row.title === title && row.enabled === enabled && row.hidden === hidden) return false
    this.#rows.set(__id, { ...row, title, enabled, hidden })
    return true
  }

  /** Signature and values of the `ItemsPropertiesUpdated` signal for these rows. */
  changes(ids: readonly number[]): { signature: string; body: readonly unknown[] } {
    const updated = ids.map((id) => [id, getProperties(this.#getRow(id))])
    return { signature: updateSignature, body: [updated, []] }
  }

  #add(item: Item): void {
    this.#rows.set(item.__id, item)
    for (const child of item.items) this.#add(child)
  }

  #getRow(id: unknown): Item {
    const row = this.#rows.get(Number(id))
    if (!row) throw new BusError('org.freedesktop.DBus.Error.InvalidArgs')
    return row
  }

  #readMethods(): Readonly<Record<string, ServedMethod>> {
    return {
      GetLayout: {
        takes: 'iias',
        gives: 'u(ia{sv}av)',
        run: ([id, depth, names]) => [
          1,
          this.#toLayout(this.#getRow(id), Number(depth), toTexts(names)),
        ],
      },
      GetGroupProperties: {
        takes: 'aias',
        gives: 'a(ia{sv})',
        run: ([ids, names]) => {
          const wanted = toList(ids).length === 0 ? [...this.#rows.keys()] : toList(ids)
          const known = wanted.flatMap((id) => this.#rows.get(Number(id)) ?? [])
          return [known.map((row) => [row.__id, only(getProperties(row), toTexts(names))])]
        },
      },
      GetProperty: {
        takes: 'is',
        gives: 'v',
        run: ([id, name]) => {
          const value = getProperties(this.#getRow(id)).get(String(name))
          if (!value) throw new BusError('org.freedesktop.DBus.Error.InvalidArgs')
          return [value]
        },
      },
      AboutToShow: { takes: 'i', gives: 'b', run: () => [false] },
      AboutToShowGroup: { takes: 'ai', gives: 'aiai', run: () => [[], []] },
    }
  }

  #eventMethods(): Readonly<Record<string, ServedMethod>> {
    return {
      Event: {
        takes: 'isvu',
        gives: '',
        run: ([id, kind]) => {
          this.#click(this.#getRow(id), kind)
          return []
        },
      },
      EventGroup: {
        takes: 'a(isvu)',
        gives: 'ai',
        run: ([events]) => {
          const unknownIds: unknown[] = []
          for (const [id, kind] of toList(events).map(toList)) {
            const row = this.#rows.get(Number(id))
            if (row) this.#click(row, kind)
            else unknownIds.push(id)
          }
          return [unknownIds]
        },
      },
    }
  }

  #toLayout(item: Item, depth: number, names: readonly string[]): Layout {
    const row = this.#rows.get(item.__id) ?? item
    const children = depth === 0 ? [] : row.items
    return [
      row.__id,
      only(getProperties(row), names),
      children.map((child) => variant('(ia{sv}av)', this.#toLayout(child, depth - 1, names))),
    ]
  }

  /** Ignores rows that cannot be clicked: over the bus a program can click even a hidden row. */
  #click(row: Item, kind: unknown): void {
    if (kind === 'clicked' && canBeClicked(row)) this.#onClick(row.__id)
  }
}

const updateSignature = 'a(ia{sv})a(ias)'

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

/** The properties with these names; all for an empty list. */
const only = (properties: Properties, names: readonly string[]): Properties =>
  names.length === 0
    ? properties
    : new Map([...properties].filter(([name]) => names.includes(name)))

const toList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

const toTexts = (value: unknown): string[] => toList(value).map(String)
