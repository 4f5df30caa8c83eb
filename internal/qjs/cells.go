package qjs

import (
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// The engine takes its small objects from arenas of nearly 4 KiB. The process's
// allocator would put them between those of other VMs, fifteen in 64 KiB, and
// give back little when a thousand VMs have gone. So the first of them, about as
// many as a fresh VM has, come from one region of the VM's own.
const (
	cellSize = 4 << 10
	// cellMin is the smallest block that takes a cell.
	cellMin = 3 << 10
	// regionSize and the allocator's own header make regionPages pages of its, which
	// are then the region's alone.
	regionSize  = regionPages*pageSize - headerSize
	regionPages = 4
	pageSize    = 64 << 10
	headerSize  = 32
)

// regions holds the pages of all regions, by address / pageSize.
var regions sync.Map

// cells is a VM's region, in blocks on addresses that are multiples of cellSize.
type cells struct {
	region uintptr // 0 for none
	next   uintptr // the first cell that was never used
	end    uintptr
	free   uintptr // the first of those that were given back; each begins with the next
}

// init takes the region. Where there is no memory for it, or it does not lie as it
// should, there are no cells.
func (c *cells) init(tls *libc.TLS) {
	region := libc.Xmalloc(tls, regionSize)
	if region%pageSize != headerSize {
		libc.Xfree(tls, region)
		return
	}
	c.region, c.end = region, region+regionSize
	c.next = (region + cellSize - 1) &^ (cellSize - 1)
	for i := range uintptr(regionPages) {
		regions.Store(region/pageSize+i, nil)
	}
}

// close gives the region back, with whatever is in it.
func (c *cells) close(tls *libc.TLS) {
	if c.region == 0 {
		return
	}
	for i := range uintptr(regionPages) {
		regions.Delete(c.region/pageSize + i)
	}
	libc.Xfree(tls, c.region)
	*c = cells{}
}

// take returns a cell, 0 when there is none.
func (c *cells) take() uintptr {
	if p := c.free; p != 0 {
		c.free = *(*uintptr)(pointer(p))
		return p
	}
	if c.next+cellSize > c.end {
		return 0
	}
	p := c.next
	c.next += cellSize
	return p
}

func (c *cells) put(p uintptr) {
	*(*uintptr)(pointer(p)) = c.free
	c.free = p
}

// isCell reports whether a block of the engine is a cell.
func isCell(block uintptr) bool {
	if block%cellSize != 0 {
		return false
	}
	_, ok := regions.Load(block / pageSize)
	return ok
}

// The engine counts a block by what the allocator gives for it, and this much.
const blockOverhead = lib.MMALLOC_OVERHEAD

// takeCell is malloc for a block that fits a cell; 0 when there is none, or the
// memory limit stands against it.
func takeCell(s *lib.TJSMallocState, size lib.Tsize_t) uintptr {
	vm := vmOf(s.Fopaque)
	if vm == nil || s.Fmalloc_size+size > s.Fmalloc_limit {
		return 0
	}
	p := vm.cells.take()
	if p != 0 {
		s.Fmalloc_count++
		s.Fmalloc_size += cellSize + blockOverhead
	}
	return p
}

// putCell is free. A VM that is being closed is found no more, and gives its
// region back as a whole.
func putCell(s *lib.TJSMallocState, p uintptr) {
	s.Fmalloc_count--
	s.Fmalloc_size -= cellSize + blockOverhead
	if vm := vmOf(s.Fopaque); vm != nil {
		vm.cells.put(p)
	}
}

func onFree(tls *libc.TLS, state, block uintptr) {
	if isCell(block) {
		putCell((*lib.TJSMallocState)(pointer(state)), block)
		return
	}
	engineFree(tls, state, block)
}

// growCell is realloc of a cell to more than a cell.
func growCell(tls *libc.TLS, state, block uintptr, size lib.Tsize_t) uintptr {
	p := engineMalloc(tls, state, size)
	if p != 0 {
		copy(unsafe.Slice((*byte)(pointer(p)), cellSize), unsafe.Slice((*byte)(pointer(block)), cellSize))
		putCell((*lib.TJSMallocState)(pointer(state)), block)
	}
	return p
}

func onUsableSize(tls *libc.TLS, block uintptr) lib.Tsize_t {
	if isCell(block) {
		return cellSize
	}
	return engineUsable(tls, block)
}
