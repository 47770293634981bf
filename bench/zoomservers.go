package bench

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

//go:embed zoom_app.py
var zoomProgram []byte

// zoomServers starts ours and the peers. What is not there says why.
func (r *run) zoomServers(ctx context.Context) []*zoomServer {
	var all []*zoomServer
	for _, make := range []func(context.Context) (*zoomServer, error){r.zoomOurs, r.zoomOpenSlide, r.zoomIIP, r.zoomStatic} {
		s, err := make(ctx)
		if err != nil {
			s.absent = err.Error()
		}
		all = append(all, s)
	}
	return all
}

func (r *run) zoomOurs(ctx context.Context) (*zoomServer, error) {
	s := &zoomServer{name: "microtome", levels: []int{0, 1}}
	// Almost no cache of answers: every tile is read or made anew.
	own, err := serve(ctx, with(r.o.Serve, "--answers-memory", "1MiB"), 64<<20)
	if err != nil {
		return s, err
	}
	s.port, s.stop = own.port, own.stop
	s.path = func(k, col, row int) string {
		return fmt.Sprintf("/deepzoom/%s_files/%d/%d_%d.jpg", own.id, r.zoomLevel(k), col, row)
	}
	return s, nil
}

// zoomOpenSlide is openslide-python's tile generator under gunicorn.
func (r *run) zoomOpenSlide(ctx context.Context) (*zoomServer, error) {
	s := &zoomServer{name: Base, version: "openslide-python, gunicorn with 2 workers", levels: []int{0, 1}}
	app := filepath.Join(r.dir, "zoom_app.py")
	if err := os.WriteFile(app, zoomProgram, 0o600); err != nil {
		return s, err
	}
	port, err := freePort()
	if err != nil {
		return s, err
	}
	cmd := exec.CommandContext(ctx, r.o.Python, "-m", "gunicorn", "-w", "2", "--log-level", "error", "-b", "127.0.0.1:"+strconv.Itoa(port), "zoom_app:app")
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "SLIDE="+absolute(r.o.Path), "TILE="+strconv.Itoa(r.o.Slide.Tile[0]))
	s.path = func(k, col, row int) string { return fmt.Sprintf("/t/%d/%d_%d.jpeg", r.zoomLevel(k), col, row) }
	s.port = port
	s.stop, err = up(ctx, cmd, port, s.path(0, 0, 0))
	return s, err
}

// zoomIIP is iipsrv behind nginx.
func (r *run) zoomIIP(ctx context.Context) (*zoomServer, error) {
	s := &zoomServer{name: "iipsrv behind nginx", levels: []int{0, 1}}
	iip := "/usr/lib/iipimage-server/iipsrv.fcgi"
	if _, err := os.Stat(iip); err != nil {
		return s, err
	}
	s.version = "2 processes"
	var back [2]int
	var ends []func()
	stopBack := func() {
		for _, end := range ends {
			end()
		}
	}
	for i := range back {
		var err error
		if back[i], err = freePort(); err != nil {
			stopBack()
			return s, err
		}
		cmd := exec.CommandContext(ctx, iip, "--bind", "127.0.0.1:"+strconv.Itoa(back[i]))
		cmd.Env = append(os.Environ(), "VERBOSITY=0", "LOGFILE=/dev/null", "MAX_IMAGE_CACHE_SIZE=32")
		if err := cmd.Start(); err != nil {
			stopBack()
			return s, err
		}
		ends = append(ends, func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
	s.path = func(k, col, row int) string {
		return fmt.Sprintf("/iip?DeepZoom=%s_files/%d/%d_%d.jpg", absolute(r.o.Path), r.zoomLevel(k), col, row)
	}
	port, stopFront, err := r.nginx(ctx, "iip", fmt.Sprintf(`upstream iip { server 127.0.0.1:%d; server 127.0.0.1:%d; }`, back[0], back[1]), `location /iip { fastcgi_pass iip;
 fastcgi_param QUERY_STRING $query_string; fastcgi_param REQUEST_METHOD $request_method; fastcgi_param REQUEST_URI $request_uri; }`, s.path(0, 0, 0))
	if err != nil {
		stopBack()
		return s, err
	}
	s.port = port
	s.stop = func() { stopFront(); stopBack() }
	return s, nil
}

// zoomStatic is nginx with the bytes of stored tiles as files: the limit of the
// full level.
func (r *run) zoomStatic(ctx context.Context) (*zoomServer, error) {
	s := &zoomServer{name: StaticLimit, levels: []int{0}, path: func(_, col, row int) string { return fmt.Sprintf("/%d_%d.jpg", col, row) }}
	cols, rows := r.zoomGrid(0)
	switch {
	case r.o.StoredTiles == nil:
		return s, fmt.Errorf("no tiles to write as files")
	case cols < 1 || rows < 1:
		return s, errTooSmall
	}
	folder := filepath.Join(r.dir, "static", "tiles")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return s, err
	}
	step := max(1, cols*rows/zoomTiles)
	var at [][2]int
	for n := 0; n < cols*rows && len(at) < zoomTiles; n += step {
		at = append(at, [2]int{n % cols, n / cols})
		r.zoomPages = append(r.zoomPages, n)
	}
	err := r.o.StoredTiles(ctx, at, func(col, row int, data []byte) error {
		return os.WriteFile(filepath.Join(folder, filepath.Base(s.path(0, col, row))), data, 0o600)
	})
	if err != nil {
		return s, err
	}
	s.pages = len(at)
	s.version = fmt.Sprintf("%d stored tiles as files", s.pages)
	s.port, s.stop, err = r.nginx(ctx, "static", "", "root "+folder+"; open_file_cache max=4500; sendfile on;", s.path(0, at[0][0], at[0][1]))
	return s, err
}

// nginx runs a server of what stands in its http and server blocks.
func (r *run) nginx(ctx context.Context, name, above, block, probe string) (int, func(), error) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			return 0, nil, err
		}
	}
	port, err := freePort()
	if err != nil {
		return 0, nil, err
	}
	dir := filepath.Join(r.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, nil, err
	}
	user := ""
	if os.Getuid() == 0 {
		user = "user root; " // its workers read what root wrote
	}
	conf := fmt.Sprintf(`%sworker_processes 2; worker_rlimit_nofile 20000; daemon off; pid %s/pid; error_log %s/log;
events { worker_connections 256; }
http { access_log off; types { image/jpeg jpg; } keepalive_requests 100000000;
 client_body_temp_path %s/b; proxy_temp_path %s/p; fastcgi_temp_path %s/f; uwsgi_temp_path %s/u; scgi_temp_path %s/s;
 %s
 server { listen 127.0.0.1:%d; %s } }
`, user, dir, dir, dir, dir, dir, dir, dir, above, port, block)
	path := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		return 0, nil, err
	}
	stop, err := up(ctx, exec.CommandContext(ctx, program, "-c", path, "-p", dir), port, probe)
	return port, stop, err
}

// up starts a server and waits until it answers a path with 200.
func up(ctx context.Context, cmd *exec.Cmd, port int, path string) (stop func(), err error) {
	said := &tail{}
	cmd.Stderr = said
	// The first signal lets it end its workers.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	stop = func() {
		_ = cmd.Cancel()
		select {
		case <-ended:
		case <-time.After(cmd.WaitDelay):
			_ = cmd.Process.Kill()
			<-ended
		}
	}
	client := &http.Client{Timeout: 10 * time.Second}
	for end := time.Now().Add(15 * time.Second); ; {
		if err = fetchOne(ctx, client, fmt.Sprintf("http://127.0.0.1:%d%s", port, path)); err == nil {
			return stop, nil
		}
		select {
		case <-ended:
			return nil, fmt.Errorf("it ended: %s", said.last())
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(end) || ctx.Err() != nil {
			stop()
			return nil, fmt.Errorf("%w: %s", err, said.last())
		}
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func absolute(path string) string {
	if a, err := filepath.Abs(path); err == nil {
		return a
	}
	return path
}
