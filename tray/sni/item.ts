import type { ServedInterface, ServedObject } from '../dbus/served-object.ts'
import { variant } from '../dbus/marshal.ts'
import type { Pixmap } from './pixmap.ts'

/*
 * The icon as `org.kde.StatusNotifierItem`.
 * https://www.freedesktop.org/wiki/Specifications/StatusNotifierItem/
 */

export const itemInterface = 'org.kde.StatusNotifierItem'

/** What there is to see. */
export type ShownAppearance = { readonly pixmaps: readonly Pixmap[]; readonly tooltip: string }

const nothing = { takes: 'ii', gives: '', run: () => [] } as const

/** The object of an icon; `menuPath` is where its menu is. */
export const itemObject = (menuPath: string, face: () => ShownAppearance): ServedObject => {
  const pictures = (pixmaps: readonly Pixmap[]) =>
    variant(
      'a(iiay)',
      pixmaps.map(({ width, height, argb }) => [width, height, argb]),
    )
  const text = (value: string) => () => variant('s', value)
  const served: ServedInterface = {
    // ItemIsMenu says that any click opens the menu, so nothing is left to do here.
    methods: {
      Activate: nothing,
      SecondaryActivate: nothing,
      ContextMenu: nothing,
      Scroll: { takes: 'is', gives: '', run: () => [] },
    },
    properties: {
      Category: text('ApplicationStatus'),
      Id: text('doorward'),
      Title: text('Doorward'),
      Status: text('Active'),
      WindowId: () => variant('i', 0),
      IconName: text(''),
      IconPixmap: () => pictures(face().pixmaps),
      OverlayIconName: text(''),
      OverlayIconPixmap: () => pictures([]),
      AttentionIconName: text(''),
      AttentionIconPixmap: () => pictures([]),
      AttentionMovieName: text(''),
      IconThemePath: text(''),
      ToolTip: () => variant('(sa(iiay)ss)', ['', [], face().tooltip, '']),
      ItemIsMenu: () => variant('b', true),
      Menu: () => variant('o', menuPath),
    },
    signals: { NewIcon: '', NewToolTip: '', NewTitle: '', NewStatus: 's' },
  }
  return { [itemInterface]: served }
}
